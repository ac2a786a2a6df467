// SPDX-License-Identifier: Apache-2.0
// The output: a table on stdout, with each line printed as soon as its row has been measured, and a JSON file
// with everything.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/rows.hpp"

namespace bench {

// The number of comparisons with a target, by result.
struct Tally {
  int met = 0, level = 0, missed = 0;  // by floor
  int missed_disturbed = 0;            // of the missed: while other programs ran
  int out_of_reach = 0;                // of the missed: the floor is above the row's limit
  int goals_met = 0, goals = 0;
};
Tally tally(const std::vector<RowResult>& rows);

void print_head(const Settings& settings);
void print_row(const RowResult& row);
void print_tail(const Tally& tally, const Settings& settings, const Runner& runner);

// Returns false, with a message on stderr, if the file cannot be written.
bool write_json(const std::string& path, const Settings& settings, const std::vector<RowResult>& rows,
                const Runner& runner);

}  // namespace bench
