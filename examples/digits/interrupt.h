// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C handling. The first Ctrl-C stops the training after the current step; the second one terminates the
// program.
#pragma once

#include <stdint.h>

/**
 * Installs the handler for SIGINT. If `terminate` is not 0, SIGTERM is handled the same way. A launcher sends
 * SIGTERM to the remaining workers when one fails; with the handler, they can still print libdist's report of
 * the failure.
 */
void interrupt_catch(int32_t terminate);

/** Returns whether a signal has arrived. */
int interrupt_came(void);
