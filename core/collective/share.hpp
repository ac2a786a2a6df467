// SPDX-License-Identifier: Apache-2.0
// How the members of a round share out work that consists of many like items.
#pragma once

#include <cstddef>

#include "core/collective/collectives.hpp"
#include "core/collective/partition.hpp"

namespace dist {

// Blocks of all parts, beginning with those of one's own: who is done helps the others. There are as many
// parts as members can run side by side: where CPUs are oversubscribed, whoever runs goes on where the last
// one stopped. Parts stay whole ranges, since memory likes to be read in order. The members have armed their
// tickets.
template <class Run>
void share_blocks(const Member& member, std::size_t items, std::size_t block, Run&& run) noexcept {
  Group& group = member.group;
  const auto lanes = static_cast<std::size_t>(group.lanes());
  for (std::size_t turn = 0; turn < lanes; ++turn) {
    const std::size_t lane = (static_cast<std::size_t>(member.me) + turn) % lanes;
    const Range part = part_of(items, lanes, lane);
    const std::size_t blocks = (part.end - part.begin + block - 1) / block;
    for (std::size_t b;
         (b = group.take_ticket(member.me, static_cast<int>(lane))) < blocks && !group.poisoned();) {
      const Range taken = block_of(part.end - part.begin, block, b);
      run(Range{part.begin + taken.begin, part.begin + taken.end});
    }
  }
}

}  // namespace dist
