// SPDX-License-Identifier: Apache-2.0
#include "core/ps/applied_ids.hpp"

namespace dist {

bool AppliedIds::has(int64_t id) const noexcept {
  if (id < watermark()) return true;
  const auto word = static_cast<std::size_t>((id - first_) / kWord);
  return word < bits_.size() && (bits_[word] >> (id - first_) % kWord & 1) != 0;
}

Status AppliedIds::reserve(int64_t id) {
  if (id < 0 || id - first_ >= kMostAhead) {
    return invalid_argument("closure %lld is too far ahead of the watermark, %lld",
                            static_cast<long long>(id), static_cast<long long>(watermark()));
  }
  if (id < watermark()) return kOk;
  const auto words = static_cast<std::size_t>((id - first_) / kWord) + 1;
  if (bits_.size() < words) bits_.resize(words);
  return kOk;
}

void AppliedIds::add(int64_t id) noexcept {
  if (id < watermark()) return;
  bits_[static_cast<std::size_t>((id - first_) / kWord)] |= uint64_t{1} << (id - first_) % kWord;
}

void AppliedIds::forget_below(int64_t watermark) noexcept {
  if (watermark <= this->watermark()) return;
  while (!bits_.empty() && first_ + kWord <= watermark) {
    bits_.pop_front();
    first_ += kWord;
  }
  if (bits_.empty()) first_ = watermark / kWord * kWord;
  skipped_ = watermark - first_;
}

void AppliedIds::write(std::pmr::vector<int64_t>* out) const {
  out->push_back(watermark());
  // Bits below the watermark are cleared: equal sets give equal lists, except for zeros at the end.
  uint64_t mask = ~uint64_t{0} << skipped_;
  for (const uint64_t each : bits_) {
    out->push_back(static_cast<int64_t>(each & mask));
    mask = ~uint64_t{0};
  }
}

Status AppliedIds::read(std::span<const int64_t> numbers) {
  if (numbers.empty() || numbers[0] < 0 || numbers[0] > INT64_MAX / 2 ||
      numbers.size() > static_cast<std::size_t>(kMostAhead / kWord) + 1) {
    return invalid_argument("an invalid list of applied closures");
  }
  bits_.clear();
  first_ = numbers[0] / kWord * kWord;
  skipped_ = numbers[0] - first_;
  for (const int64_t each : numbers.subspan(1)) bits_.push_back(static_cast<uint64_t>(each));
  return kOk;
}

}  // namespace dist
