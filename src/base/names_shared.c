/* Names, as the system's C library looks them up: nothing to say. */
#include "base/names.h"

void
names_init(void)
{
}
