// SPDX-License-Identifier: Apache-2.0
// Renames the functions that Highway's headers expect from its library. Include it before any Highway header.
//
// libdist does not link Highway's library: its initializer takes some milliseconds at every program start,
// and the host may be linked with another version of it. highway.cpp defines the few functions that are
// needed.
#pragma once

#define SupportedTargets DistSupportedTargets  // NOLINT(readability-identifier-naming): beside Highway's
#define GetChosenTarget DistGetChosenTarget    // NOLINT(readability-identifier-naming)
#define Abort DistAbort                        // NOLINT(readability-identifier-naming)
