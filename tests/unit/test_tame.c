#include "ssh/tame.h"
#include "test.h"

static const char *const tame[] = { "echo hi", "ls", "  ls -la /tmp",
	"cd /srv/x && make -j8 CC=gcc", "nvidia-smi --query-gpu=name",
	"git log -1 --format='%h $x `y`' | cat", "python3 \"a b.py\" <in >out",
	"ls 2>&1 | tail -n 5", "ls >&2", "ls >&2>f", "false || true; pwd",
	"grep -c a* ?[0-9] ~/x", "./trap x", "echo trap", "echo a>trap",
	"ls x&&echo y", "echo 'a\nb'", NULL };

static const char *const wild[] = { "", " ", "trap 'echo bye' EXIT",
	"ls; trap x EXIT", "ls|trap x", "ls&&exec >f", "exec ls", "exit 3",
	". ./x", "source x", "eval ls", "command trap x EXIT", "'trap' x EXIT",
	"tr\"ap\" x EXIT", "tr\\ap x EXIT", "t?ap x EXIT", "~/x/trap y",
	"set -x", "X=1", "X=1 ls", "echo $X", "echo \"$X\"", "echo `ls`",
	"echo \"`ls`\"", "echo \"\\\"", "sleep 9 &", "sleep 9& ls", "(ls)",
	"{ ls; }", "f() { ls; }", "f () ( ls )", "cat <<x", "cat <<<x",
	"ls >f trap; set x", ">f trap x EXIT", "cat <(ls)", "cat <&5",
	"ls |& cat", "ls ;; ls", "ls ;& ls", "ls;", "ls &&", "ls\ntrap x EXIT",
	"ls \\\n", "! ls", "time ls", "[ -f x ]", "[[ a = b ]]", "if ls",
	"echo 'a", "echo \"a", "echo a # b", "echo {a,b}", "printf -v x y",
	"wait", "kill 1", "echo \303\274", "ls >& f && unset x",
	"test -v x[y=1]", "echo 12>&1-", "echo >&\"1\"-", "ls >&f", "ls >& 1",
	"echo a >&& trap x", "2>&1 trap x EXIT", "ls; 2>f exit", "0<f set x",
	NULL };

static void
what_leaves_the_shell_alone_is_tame(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; tame[i] != NULL; i++) {
		if (!tame_command(tame[i]))
			fail_msg("not tame: %s", tame[i]);
	}
}

static void
all_else_is_not(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; wild[i] != NULL; i++) {
		if (tame_command(wild[i]))
			fail_msg("tame: %s", wild[i]);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaves_the_shell_alone_is_tame),
		cmocka_unit_test(all_else_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
