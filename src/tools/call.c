/* Progress of a call. */
#include "tools/call.h"

#include <stddef.h>

void
call_progress(struct call *call, double done, double total, const char *text)
{
	if (call->progress != NULL)
		call->progress(call, done, total, text);
}
