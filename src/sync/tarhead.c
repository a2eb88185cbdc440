#include "sync/tarhead.h"

#include <stdio.h>
#include <string.h>

#define SECOND 1000000000

/* The largest number of eleven octal digits. */
#define OCTAL_MAX INT64_C(077777777777)

/* ustar; what is not here is left empty. */
struct ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char sum[8];
	char type;
	char target[100];
	char magic[8]; /* with the version */
	char rest[247];
};

_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "ustar is one block");

/* Fills the field but for its last byte, which stays NUL. */
static void
octal(char *field, size_t size, int64_t value)
{
	size_t i;

	for (i = size - 1; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
}

/* GNU's way for what has too many digits: big-endian, first bit set. */
static void
base256(char *field, size_t size, int64_t value)
{
	size_t i;

	for (i = size; i-- > 0; value >>= 8)
		field[i] = (char)(value & 0xff);
	field[0] = (char)0x80;
}

/* Whole seconds, rounded down. */
static int64_t
seconds(int64_t mtime)
{
	return mtime / SECOND - (mtime % SECOND < 0 ? 1 : 0);
}

static int64_t
clamp(int64_t value)
{
	if (value < 0)
		return 0;
	return value > OCTAL_MAX ? OCTAL_MAX : value;
}

static void
text(char *field, const char *s)
{
	memcpy(field, s, strnlen(s, TAR_NAME_MAX));
}

/* The sum of all bytes, the field for it taken as blanks. */
static void
checksum(struct ustar *u)
{
	const unsigned char *bytes = (const unsigned char *)u;
	int64_t sum = 0;
	size_t i;

	memset(u->sum, ' ', sizeof(u->sum));
	for (i = 0; i < sizeof(*u); i++)
		sum += bytes[i];
	octal(u->sum, sizeof(u->sum) - 1, sum);
	u->sum[6] = '\0';
}

void
tar_head(unsigned char block[TAR_BLOCK], const struct tar_head *h)
{
	struct ustar u = { .type = (char)h->type };

	text(u.name, h->name);
	if (h->target != NULL)
		text(u.target, h->target);
	octal(u.mode, sizeof(u.mode), h->mode & 0777);
	octal(u.uid, sizeof(u.uid), 0);
	octal(u.gid, sizeof(u.gid), 0);
	octal(u.mtime, sizeof(u.mtime), clamp(seconds(h->mtime)));
	if (h->size <= OCTAL_MAX)
		octal(u.size, sizeof(u.size), h->size);
	else
		base256(u.size, sizeof(u.size), h->size);
	memcpy(u.magic, "ustar\00000", sizeof(u.magic));
	checksum(&u);
	memcpy(block, &u, sizeof(u));
}

bool
tar_needs_pax(int64_t mtime)
{
	return mtime % SECOND != 0 || seconds(mtime) != clamp(seconds(mtime));
}

/* "30 mtime=1700000000.123456789\n": the length counts itself. */
size_t
tar_pax(char out[64], int64_t mtime)
{
	uint64_t abs = mtime < 0 ? -(uint64_t)mtime : (uint64_t)mtime;
	char record[48];
	int len = snprintf(record, sizeof(record), " mtime=%s%llu.%09llu\n",
	    mtime < 0 ? "-" : "", (unsigned long long)(abs / SECOND),
	    (unsigned long long)(abs % SECOND));

	/* With the blank it has 19 to 30 bytes: two digits always do. */
	return (size_t)snprintf(out, 64, "%d%s", len + 2, record);
}
