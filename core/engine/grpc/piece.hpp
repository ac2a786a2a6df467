// SPDX-License-Identifier: Apache-2.0
// Piece: a part of a granted message whose data go apart from frames, from the memory of its sender to that of its receiver.
// Neither memory is held for that: what the receiver has let go goes nowhere, and where the sender has let it go, something
// goes in its place. So a byte follows the data: 1: they are the message's; 0: they are not, and it will be dropped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dist::grpc_link {

struct Piece {
  static constexpr std::size_t kMostBytes = std::size_t{1024} << 10;
  // Smaller messages go in chunks.
  static constexpr std::size_t kLeastMessageBytes = std::size_t{64} << 10;

  uint64_t id = 0;  // of the message, as it was offered
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

}  // namespace dist::grpc_link
