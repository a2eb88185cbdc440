"""Where we are behind: why, and what would close it."""

# Benchmark, a part of the row's title or of the target's text, what to say.
KNOWN = (
    ("start", "tools/list", "Ours also says what its tools return: the schemas "
     "of the results are 9 of its 24 kB, which only leaving them out would "
     "save. Even then (14 kB) the arguments would need shorter texts."),
    ("exec", "first `echo hi`", "After the login ours starts a shell that "
     "waits, and only then sends the command: two round trips more than ssh. "
     "sshd takes input for a session once its program runs, so the text of "
     "that shell follows a round trip after the session was asked for; and "
     "the command follows when the shell has told its clock, without which it "
     "might run late, after a link was frozen. If the session told the clock "
     "as it begins, text and command could travel together, one round trip "
     "less. Every later command is the faster for that shell."),
    ("exec", "of every other server", "The fastest of them takes about 50 ms, "
     "and a fiftieth of that is less than a shell that waits needs to hear a "
     "command through sshd and to answer."),
    ("sync", "as fast as the original", "ssh itself is the limit: the "
     "benchmark prints what one connection carries without any file. More "
     "connections at once would help where there are more processors."),
    ("sync", "to where there is nothing", "tar writes straight to the final "
     "names. Ours looks at what is there, writes beside it and renames at the "
     "end, so that a break leaves no half tree."),
    ("sync", "small files to here", "The same bytes through the same ssh; a "
     "round trip comes before them, in which both sides are looked at."),
    ("sync", "one file of", "The same bytes through the same ssh. Ours sends "
     "pieces of 16 MiB that are noted as they arrive, so that a break costs "
     "one of them, and looks at the file before and after."),
    ("resources", "first query", "The silent one is waited for as long as "
     "its entry allows (connect_timeout_s, 15 s), and ssh was given the same; "
     "a shorter time in the entry would end it sooner."),
)


def remedy(bench, text, busy):
    for name, part, words in KNOWN:
        if name == bench and part in text:
            return words
    if busy:
        return ("The machine was busy; to be measured on a quiet one before "
                "anything is concluded.")
    return "What would close it is not known yet."
