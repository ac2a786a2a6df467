// SPDX-License-Identifier: Apache-2.0
#include "core/input/reader.hpp"

#include <algorithm>
#include <utility>

namespace dist {
namespace {

// Interleaving more files than exist would make no difference.
std::size_t cycle_length(const HostSource& host, int32_t interleave) noexcept {
  if (!host.has_files()) return 0;
  return std::clamp<std::size_t>(static_cast<std::size_t>(interleave), 1,
                                 std::max<std::size_t>(host.num_files(), 1));
}

}  // namespace

Reader::Reader(Memory& memory, Ref<HostSource> host, const Turn& files, int32_t interleave)
    : host_(std::move(host)),
      files_(files),
      cycle_(cycle_length(*host_, interleave), &memory),
      next_file_(static_cast<std::size_t>(files.first)) {}

Status Reader::next(ValueRef* out) {
  if (host_->has_files()) {
    DIST_TRY(next_of_files(out));
  } else {
    DIST_TRY(host_->element(0, count_, out));
    last_index_ = count_;
  }
  ++count_;
  return kOk;
}

// Like TensorFlow's interleave: when a file ends, the next one takes its place in the cycle, and is opened
// when it is that place's turn.
Status Reader::next_of_files(ValueRef* out) {
  std::size_t idle = 0;
  while (idle < cycle_.size()) {
    Open& place = cycle_[at_];
    if (!place.open && next_file_ < host_->num_files()) {
      place = {true, next_file_, 0};
      next_file_ += static_cast<std::size_t>(files_.step);
    }
    if (!place.open) {
      ++idle;
      at_ = (at_ + 1) % cycle_.size();
      continue;
    }
    const Status status = host_->element(place.file, place.index, out);
    at_ = (at_ + 1) % cycle_.size();
    if (status.code() == DIST_OUT_OF_RANGE) {
      place.open = false;
      idle = 0;
      continue;
    }
    DIST_TRY(status);
    last_file_ = place.file;
    last_index_ = place.index++;
    return kOk;
  }
  return Status(DIST_OUT_OF_RANGE);
}

Status Reader::skip(int64_t elements) {
  if (!host_->has_files()) {
    count_ += elements;
    return kOk;
  }
  for (; elements > 0; --elements) {
    ValueRef skipped;
    DIST_TRY(next(&skipped));
  }
  return kOk;
}

}  // namespace dist
