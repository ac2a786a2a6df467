// SPDX-License-Identifier: Apache-2.0
// Runs an area as a cmocka group: one test for each of its topics and one for its part of the list of
// differences.
#pragma once

#include <string>

#include "report.hpp"

namespace golden {

// Plays options.selection.area in all of options.directories that have it. Returns the number of failed
// tests.
int run_suite(const ReportOptions& options);

}  // namespace golden
