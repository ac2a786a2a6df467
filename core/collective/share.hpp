// SPDX-License-Identifier: Apache-2.0
// How the members of a round share work that consists of many items of one kind.
#pragma once

#include <cstddef>

#include "core/collective/collectives.hpp"
#include "core/collective/partition.hpp"

namespace dist {

// Takes blocks of the member's own part, then of the other parts, so that a member that has finished helps
// the others. There are as many parts as members can run at the same time. In an oversubscribed group several
// members share a part, and each continues where the previous one stopped. A part is one range, because
// sequential memory access is faster. The members must have reset their tickets.
template <class Run>
void share_blocks(const Member& member, std::size_t items, std::size_t block, Run&& run) noexcept {
  Group& group = member.group;
  const auto stripes = static_cast<std::size_t>(group.stripes());
  for (std::size_t turn = 0; turn < stripes; ++turn) {
    const std::size_t stripe = (static_cast<std::size_t>(member.me) + turn) % stripes;
    const Range part = part_of(items, stripes, stripe);
    const std::size_t blocks = (part.end - part.begin + block - 1) / block;
    for (std::size_t b;
         (b = group.take_ticket(member.me, static_cast<int>(stripe))) < blocks && !group.aborted();) {
      const Range taken = block_of(part.end - part.begin, block, b);
      run(Range{part.begin + taken.begin, part.begin + taken.end});
    }
  }
}

}  // namespace dist
