/*
 * Names, with glibc linked in.
 *
 * What /etc/nsswitch.conf asks for may be a module, and a module is made for
 * the C library of its system: loaded into a program that has another one, it
 * brings that library with it, and may crash.  Files and DNS are built in.
 */
#include <nss.h>

#include "base/names.h"

void
names_init(void)
{
	__nss_configure_lookup("hosts", "files dns");
	__nss_configure_lookup("passwd", "files");
}
