# Shell texts as C strings:
#
#	cmake -D OUT=FILE.c -D HEADER=FILE.h -D PREFIX=WORD -D DIR=DIRECTORY \
#	    -D "NAMES=a b" -P embed.cmake
#
# DIR/a.sh becomes WORD_a, which HEADER declares. Comments and indentation stay here. So in a text
# no line of a string may begin with white space or "#".
set(code "/* Made by scripts/embed.cmake. */\n#include \"${HEADER}\"\n")
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
  string(APPEND code "\nconst char ${PREFIX}_${name}[] =\n\t\"${text}\";\n")
endforeach()
file(WRITE "${OUT}" "${code}")
