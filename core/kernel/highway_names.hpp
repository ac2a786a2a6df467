// SPDX-License-Identifier: Apache-2.0
// What Highway's headers take from Highway's library, under names of libdist's. Comes before any header of Highway's.
//
// Whoever is linked with that library waits some milliseconds for its initializer at each start of a program, and a host may be
// linked with one of another version. So libdist has the few functions itself (highway.cpp), and needs the headers alone.
#pragma once

#define SupportedTargets DistSupportedTargets  // NOLINT(readability-identifier-naming): beside Highway's
#define GetChosenTarget DistGetChosenTarget    // NOLINT(readability-identifier-naming)
#define Abort DistAbort                        // NOLINT(readability-identifier-naming)
