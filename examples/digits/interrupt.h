// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: the first one stops the training after the step under way, a second one ends the program at once, as ever.
#pragma once

#include <stdint.h>

/**
 * From now on. With `terminate` SIGTERM does as Ctrl-C: by it a launcher ends the workers that are left when one has
 * failed, and these then still say what libdist tells them of that one.
 */
void interrupt_catch(int32_t terminate);

/** Whether one came. */
int interrupt_came(void);
