"""Programs that look like those of Slurm, on the PATH of a host.

    slurm = FakeSlurm(directory)
    Sshd(..., env={"PATH": "%s:%s" % (slurm.bin, os.environ["PATH"])})

Jobs run at once, by a shell, as Slurm would run them on a node.  Every call is
written down with its words.  Real ones are in slurm.py.
"""

import pathlib

NAMES = ("sbatch", "squeue", "srun", "scancel", "sacct", "sinfo")

PROGRAM = r"""#!/bin/sh
dir='%s' me=${0##*/}
call=$(mktemp "$dir/calls/$me.XXXXXX") || exit 1
printf '%%s\0' "$@" >"$call"
case $me in
sbatch)
	out=/dev/null
	for word; do
		value=${word#*=}
		case $word in
		--job-name=*) name=$value ;;
		--comment=*) comment=$value ;;
		--chdir=*) cd -- "$value" || exit 1 ;;
		--output=*) out=$(printf %%s "$value" | sed 's/%%%%/%%/g') ;;
		--wrap=*) wrap=$value ;;
		esac
	done
	SLURM_JOB_ID=$$ setsid sh -c "$wrap" </dev/null >>"$out" 2>&1 &
	printf '%%s|%%s|%%s\n' "$!" "$comment" "$name" >"$dir/jobs/$$"
	echo $$
	;;
srun)
	while :; do
		case $1 in
		--*) shift ;;
		*) break ;;
		esac
	done
	exec "$@"
	;;
squeue)
	for job in "$dir"/jobs/*; do
		[ -f "$job" ] || continue
		IFS='|' read -r pid rest <"$job"
		state=COMPLETED
		! kill -0 "$pid" 2>/dev/null || state=RUNNING
		printf '%%s|%%s|None|1|n1|1:00|%%s\n' "${job##*/}" $state "$rest"
	done
	;;
sinfo)
	echo 'main*|up|infinite|1|idle|0/4/0/4|1000|(null)'
	;;
sacct)
	echo 'Slurm accounting storage is disabled' >&2
	exit 1
	;;
esac
"""


class FakeSlurm:
    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.bin = self.dir / "bin"
        for path in (self.bin, self.dir / "calls", self.dir / "jobs"):
            path.mkdir(parents=True)
        program = self.bin / "slurm"
        program.write_text(PROGRAM % self.dir)
        program.chmod(0o755)
        for name in NAMES:
            (self.bin / name).symlink_to("slurm")

    def calls(self, name):
        """The words of each call of a program."""
        return [path.read_bytes().decode(errors="replace").split("\0")[:-1]
                for path in (self.dir / "calls").glob(name + ".*")]
