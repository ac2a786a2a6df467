// SPDX-License-Identifier: Apache-2.0
// dist-info --check: whether a job can run in this environment.
#pragma once

#include <string>
#include <vector>

#include "capi/tools/info_report.hpp"
#include "capi/tools/info_trial.hpp"

namespace dist::info {

// The outcome of one check. A note does not keep a job from running.
enum class Outcome : unsigned char { kOk, kNote, kProblem };

struct Finding {
  Outcome outcome;
  std::string subject;  // "port"
  std::string text;     // one line: what was found; for a problem also why, and what to do
};

struct Checked {
  std::vector<Finding> findings;
  Trial trial;
  bool has_trial = false;  // it has been run

  bool is_ok() const;
};

Checked check_environment(const Report& report);
std::string text_of(const Checked& checked);
// Writes the members of an object.
void write_json(const Checked& checked, JsonWriter& json);

}  // namespace dist::info
