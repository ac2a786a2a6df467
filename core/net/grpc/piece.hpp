// SPDX-License-Identifier: Apache-2.0
// Piece: a part of a granted message whose data travel outside frames, from the sender's memory directly to
// the receiver's.
//
// Neither side's memory is pinned for this. If the receiver has cancelled, the data are discarded; if the
// sender has cancelled, other bytes are sent in their place. Therefore a byte follows the data: 1 if they
// belong to the message, 0 if they do not and the message will be dropped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dist::grpc_link {

struct Piece {
  static constexpr std::size_t kMostBytes = std::size_t{1024} << 10;
  // Smaller messages are sent in chunks.
  static constexpr std::size_t kLeastMessageBytes = std::size_t{64} << 10;

  uint64_t id = 0;  // of the offer
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

}  // namespace dist::grpc_link
