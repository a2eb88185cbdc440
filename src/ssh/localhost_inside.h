/* The shell of localhost.c: local.sh, embedded by the build. */
#ifndef SSH_LOCALHOST_INSIDE_H
#define SSH_LOCALHOST_INSIDE_H

extern const char localhost_text_local[];

#endif
