// SPDX-License-Identifier: Apache-2.0
// Workers in separate network namespaces, whose links fail, lose packets or are slow.
#pragma once

#include <string>
#include <vector>

#include "tests/faults/matrix.hpp"
#include "tests/faults/process_job.hpp"

namespace faults {

enum class LinkFault : int { kDown, kLoss, kSlow };
inline constexpr int kLinkFaults = 3;
const char* link_fault_name(LinkFault fault);

struct LinkResult : Tally {
  LinkFault fault;
  bool tls;
};

// Plays the cells with a secret and plain text, and with certificates. If the namespaces cannot be made here,
// returns no results and sets `why_not`.
std::vector<LinkResult> play_links(LinkFault fault, const Options& options, std::string* why_not);

}  // namespace faults
