// SPDX-License-Identifier: Apache-2.0
#include "core/ps/directory.hpp"

#include <algorithm>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/layout/partitioner.hpp"
#include "core/ps/numbers.hpp"

namespace dist {

std::size_t RemoteVariable::row_bytes() const noexcept {
  std::size_t bytes = dtype_size(dtype);
  for (std::size_t i = 1; i < shape.size(); ++i) bytes *= static_cast<std::size_t>(shape[i]);
  return bytes;
}

std::size_t RemoteVariable::bytes() const noexcept {
  return row_bytes() * (shape.empty() ? 1 : static_cast<std::size_t>(shape[0]));
}

std::size_t Directory::size() const noexcept {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

Status Directory::find(std::string_view name, const RemoteVariable** out) const noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    return fail(DIST_NOT_FOUND, "the parameter servers have no variable \"%.*s\"",
                static_cast<int>(std::min<std::size_t>(name.size(), 100)), name.data());
  }
  *out = &entries_[found->second];
  return kOk;
}

const RemoteVariable& Directory::at(std::size_t index) const noexcept {
  const std::scoped_lock lock(mutex_);
  return entries_[index];
}

Status Directory::add(RemoteVariable variable) {
  const std::scoped_lock lock(mutex_);
  if (by_name_.find(variable.name) != by_name_.end()) {
    return fail(DIST_ALREADY_EXISTS, "variable \"%s\" already exists", Shown(variable.name.c_str()).c_str());
  }
  variable.index = static_cast<int64_t>(entries_.size());
  entries_.push_back(std::move(variable));
  try {
    by_name_.emplace(entries_.back().name, entries_.size() - 1);
  } catch (...) {
    entries_.pop_back();
    throw;
  }
  return kOk;
}

void Directory::clear() noexcept {
  const std::scoped_lock lock(mutex_);
  by_name_.clear();
  entries_.clear();
}

// For each entry: length of its name, dtype, staleness, ndim, the shape, the number of parts, and for each
// part its server and its number there. The names follow the numbers, one after the other.
Status Directory::write(std::size_t first, ValueRef* out) const {
  std::pmr::vector<int64_t> numbers(&memory_);
  std::pmr::string names(&memory_);
  {
    const std::scoped_lock lock(mutex_);
    if (first >= entries_.size()) {
      *out = {};
      return kOk;
    }
    numbers.push_back(static_cast<int64_t>(first));
    for (std::size_t i = first; i < entries_.size(); ++i) {
      const RemoteVariable& each = entries_[i];
      numbers.push_back(static_cast<int64_t>(each.name.size()));
      numbers.push_back(each.dtype);
      numbers.push_back(each.max_staleness);
      numbers.push_back(static_cast<int64_t>(each.shape.size()));
      numbers.insert(numbers.end(), each.shape.begin(), each.shape.end());
      numbers.push_back(static_cast<int64_t>(each.parts.size()));
      for (const RemoteVariable::Part& part : each.parts) {
        numbers.push_back(part.ps);
        numbers.push_back(part.number);
      }
      names += each.name;
    }
  }
  const auto bytes = static_cast<int64_t>(names.size());
  ValueRef texts;
  DIST_TRY(Value::copy_tensor(memory_, {names.data(), DIST_U8, 1, &bytes, nullptr}, &texts));
  Value* const rest[] = {texts.get()};
  return make_message(memory_, numbers, rest, out);
}

namespace {

Status damaged() noexcept { return invalid_argument("the list of variables is damaged"); }

// Reads consecutive numbers; returns 0 after the last one.
class NumberReader {
 public:
  explicit NumberReader(std::span<const int64_t> numbers) noexcept : numbers_(numbers) {}
  bool ended() const noexcept { return at_ == numbers_.size(); }
  bool good() const noexcept { return good_; }
  int64_t take(int64_t least, int64_t most) noexcept {
    const bool there = at_ < numbers_.size() && numbers_[at_] >= least && numbers_[at_] <= most;
    good_ = good_ && there;
    return there ? numbers_[at_++] : (at_ = numbers_.size(), least);
  }

 private:
  std::span<const int64_t> numbers_;
  std::size_t at_ = 0;
  bool good_ = true;
};

}  // namespace

Status Directory::read(const Value& message, int32_t num_ps) {
  std::span<const int64_t> numbers;
  DIST_TRY(read_numbers(&message, 1, 1, &numbers));
  const Value& texts = *message.items()[1];
  if (texts.kind() != DIST_VALUE_TENSOR || texts.tensor().dtype != DIST_U8 || texts.tensor().ndim != 1) {
    return damaged();
  }
  std::string_view names(static_cast<const char*>(texts.tensor().data),
                         static_cast<std::size_t>(texts.tensor().shape[0]));
  NumberReader in(numbers);
  auto index = static_cast<std::size_t>(in.take(0, INT32_MAX));
  if (index > size())
    return invalid_argument("the list of variables lacks the variables before its first one");
  for (; !in.ended(); ++index) {
    RemoteVariable each(memory_);
    const auto bytes = static_cast<std::size_t>(in.take(0, static_cast<int64_t>(names.size())));
    each.name = names.substr(0, bytes);
    names.remove_prefix(bytes);
    each.dtype = static_cast<dist_dtype>(in.take(1, kLastDtype));
    each.max_staleness = static_cast<int32_t>(in.take(0, INT32_MAX));
    each.shape.resize(static_cast<std::size_t>(in.take(0, DIST_MAX_NDIM)));
    for (int64_t& size : each.shape) size = in.take(0, INT64_MAX);
    const int64_t rows = each.shape.empty() ? 1 : each.shape[0];
    const int64_t parts = in.take(1, std::max<int64_t>(rows, 1));
    if (!in.good() || parts > static_cast<int64_t>(numbers.size())) return damaged();
    dist_tensor spec = each.spec();
    std::byte unset;
    spec.data = &unset;
    TensorSize size;
    DIST_TRY(check_tensor(spec, "a variable of the list", &size));
    for (int64_t i = 0; i < parts; ++i) {
      RemoteVariable::Part part{};
      part.ps = static_cast<int32_t>(in.take(0, num_ps - 1));
      part.number = in.take(0, INT32_MAX);
      DIST_TRY(rows_of_part(rows, parts, i, &part.begin, &part.rows));
      each.parts.push_back(part);
    }
    if (!in.good()) return damaged();
    if (index >= this->size()) DIST_TRY(add(std::move(each)));
  }
  return kOk;
}

}  // namespace dist
