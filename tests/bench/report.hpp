// SPDX-License-Identifier: Apache-2.0
// The output: a table on stdout, with each line printed as soon as its row has been measured, and a JSON file
// with everything.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/rows.hpp"

namespace bench {

// How many comparisons had a target, and how they came out.
struct Tally {
  int met = 0, level = 0, missed = 0;  // floors
  int missed_disturbed = 0;            // of the missed, while other programs ran
  int out_of_reach = 0;                // of the missed, above what the row's limit itself is
  int goals_met = 0, goals = 0;
};
Tally tally(const std::vector<RowResult>& rows);

void print_head(const Settings& settings);
void print_row(const RowResult& row);
void print_tail(const Tally& tally, const Settings& settings, const Runner& runner);

// False, with a word on stderr, where the file cannot be written.
bool write_json(const std::string& path, const Settings& settings, const std::vector<RowResult>& rows,
                const Runner& runner);

}  // namespace bench
