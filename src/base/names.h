/* Where names of hosts and users are looked up. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

/* Before the first look-up and the first thread. */
void names_init(void);

#endif
