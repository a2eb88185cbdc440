# Shell texts as C strings, for the far side:
#
#	cmake -D OUT=FILE.c -D DIR=DIRECTORY -D "NAMES=a b" -P embed.cmake
#
# DIR/a.sh becomes job_text_a. Comments and indentation stay here. So in a text
# no line of a string may begin with white space or "#".
set(code "/* Made by scripts/embed.cmake. */\n#include \"job/text.h\"\n")
separate_arguments(NAMES)
foreach(name ${NAMES})
  file(READ "${DIR}/${name}.sh" text)
  string(REGEX REPLACE "\n[ \t]+" "\n" text "\n${text}")
  string(REGEX REPLACE "\n#[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(REGEX REPLACE "^\n" "" text "${text}")
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
  string(APPEND code "\nconst char job_text_${name}[] =\n\t\"${text}\";\n")
endforeach()
file(WRITE "${OUT}" "${code}")
