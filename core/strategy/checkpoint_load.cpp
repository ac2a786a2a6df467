// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/on_stack.hpp"
#include "core/base/tensor.hpp"
#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/reader.hpp"
#include "core/strategy/checkpoint.hpp"
#include "core/strategy/saved_variable.hpp"

namespace dist {
namespace {

Status check_fit(const FoundTensor& found, const Variable& variable) noexcept {
  const StoredTensor& tensor = *found.tensor;
  const dist_tensor is = found.spec();
  const dist_tensor wanted = variable.first_copy();
  if (is.dtype == wanted.dtype && same_shape(is, wanted)) return kOk;
  char is_text[160];
  char wanted_text[160];
  describe(is, is_text, sizeof is_text);
  describe(wanted, wanted_text, sizeof wanted_text);
  return invalid_argument(
      "tensor \"%s\" is %s%s%s, but variable \"%s\" is %s. Both must have the same dtype and shape.",
      Shown(tensor.name).c_str(), is.dtype == 0 ? tensor.dtype->name : "", is.dtype == 0 ? ", " : "", is_text,
      Shown(variable.name()).c_str(), wanted_text);
}

Status read_position(const Checkpoint& file, Position* out) noexcept {
  Position position;
  for (const PositionField& field : kPosition) {
    const char* const text = file.text(field.key);
    if (text == nullptr) {
      return fail(DIST_NOT_FOUND, "the file contains no input position: \"%s\" is missing", field.key);
    }
    const char* const end = text + std::strlen(text);
    const auto read = std::from_chars(text, end, position.*field.field);
    if (read.ec != std::errc() || read.ptr != end || position.*field.field < 0)
      return fail(DIST_DATA_LOSS, "\"%s\" is \"%s\", but must be a number", field.key, Shown(text).c_str());
  }
  *out = position;
  return kOk;
}

// Each thread takes the next tensor as long as there are any. Error records are thread-local, so if a thread
// fails, the caller repeats everything and gets the first error itself.
template <class Body>
Status for_each_tensor(const CrossReplica& context, std::size_t n, std::size_t threads, const Body& body) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> well{true};
  const auto task = [&](int64_t first, int64_t last) {
    for (int64_t thread = first; thread < last; ++thread)
      for (std::size_t i = next++; i < n; i = next++)
        if (!body(i, static_cast<std::size_t>(thread)).ok()) well = false;
  };
  if (threads > 1 && context.arena->parallel_for(0, static_cast<int64_t>(threads), 1, task).ok() && well)
    return kOk;
  for (std::size_t i = 0; i < n; ++i) DIST_TRY(body(i, 0));
  return kOk;
}

uint64_t bytes_of(const FoundTensor& found) noexcept { return found.tensor->end - found.tensor->begin; }

// The copies to read, which are equal; a sum is divided later.
class Copies {
 public:
  // `room` has an element for each copy.
  Copies(const Variable& variable, std::byte** room) noexcept
      : copies_(room), n_(is_sum(variable) ? 1 : static_cast<std::size_t>(variable.num_copies())) {
    for (std::size_t r = 0; r < n_; ++r)
      copies_[r] = static_cast<std::byte*>(variable.component(LocalReplica{static_cast<int32_t>(r)}).data);
  }
  std::span<std::byte* const> all() const noexcept { return {copies_, n_}; }

 private:
  std::byte** const copies_;
  const std::size_t n_;
};

// The data of small tensors is kept in memory from the check to the assignment, so the file is read once. The
// data of the others is checked and then read again.
class KeptTensors {
 public:
  KeptTensors(const CrossReplica& context, std::span<const FoundTensor> tensors)
      : places_(tensors.size(), kNowhere, context.memory), data_(context.memory) {
    constexpr uint64_t kSmallBytes = 4096;
    constexpr std::size_t kMostBytes = std::size_t{1} << 20;
    std::size_t end = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const uint64_t bytes = bytes_of(tensors[i]);
      if (bytes > kSmallBytes || end + bytes > kMostBytes) continue;
      places_[i] = end;
      end += static_cast<std::size_t>(bytes);
    }
    data_.resize(end);
  }
  // NULL if the tensor is not kept.
  std::byte* place(std::size_t tensor) noexcept {
    return places_[tensor] == kNowhere ? nullptr : data_.data() + places_[tensor];
  }

 private:
  static constexpr std::size_t kNowhere = SIZE_MAX;

  std::pmr::vector<std::size_t> places_;
  std::pmr::vector<std::byte> data_;
};

// Several threads if there is enough work. Each needs a buffer, and a host's executor may have any number of
// threads.
std::size_t loading_threads(const CrossReplica& context, std::span<const FoundTensor> tensors) noexcept {
  constexpr uint64_t kLeastBytes = uint64_t{4} << 20;
  constexpr int kMostThreads = 64;
  uint64_t bytes = 0;
  for (const FoundTensor& found : tensors) bytes += bytes_of(found);
  if (bytes < kLeastBytes) return 1;
  return std::min(tensors.size(),
                  static_cast<std::size_t>(std::min(context.arena->max_threads(), kMostThreads)));
}

// The room that a thread needs to verify these tensors.
std::size_t verify_bytes(std::span<const FoundTensor> tensors) noexcept {
  uint64_t most = 0;
  for (const FoundTensor& found : tensors) most = std::max(most, bytes_of(found));
  return static_cast<std::size_t>(std::min<uint64_t>(most, TensorFile::kRoomBytes));
}

// Nothing may fail any more once the first variable has been written.
Status load(const CrossReplica& context, const char* path, const Saved& saved) {
  Ref<Checkpoint> file;
  DIST_TRY(Checkpoint::open(*context.memory, path, &file));
  std::pmr::vector<FoundTensor> tensors(saved.variables.size(), context.memory);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    DIST_TRY(check_variable(context, *saved.variables[i]));
    DIST_TRY(file->find(saved.name(i), &tensors[i]));
    DIST_TRY(check_fit(tensors[i], *saved.variables[i]));
  }
  Position position;
  if (saved.position != nullptr) DIST_TRY(read_position(*file, &position));
  const std::size_t threads = loading_threads(context, tensors);
  const std::size_t block = verify_bytes(tensors);
  std::pmr::vector<std::byte> room(threads * block, context.memory);
  KeptTensors kept(context, tensors);
  DIST_TRY(for_each_tensor(context, tensors.size(), threads, [&](std::size_t i, std::size_t thread) {
    const FoundTensor& found = tensors[i];
    if (std::byte* const place = kept.place(i)) return found.file->read(*found.tensor, place);
    return found.file->verify(*found.tensor, room.data() + thread * block);
  }));
  DIST_TRY(for_each_tensor(context, tensors.size(), threads, [&](std::size_t i, std::size_t) -> Status {
    const FoundTensor& found = tensors[i];
    const Variable& variable = *saved.variables[i];
    const Copies copies(variable, DIST_ON_STACK(std::byte*, variable.num_copies()));
    const std::byte* const place = kept.place(i);
    if (place == nullptr) return found.file->read(*found.tensor, copies.all());
    for (std::byte* const copy : copies.all()) std::memcpy(copy, place, bytes_of(found));
    return kOk;
  }));
  for (Variable* const variable : saved.variables) {
    if (is_sum(*variable)) share_sum(context.replicas, *variable);
  }
  if (saved.position != nullptr) *saved.position = position;
  return kOk;
}

}  // namespace

Status load_checkpoint(const CrossReplica& context, const char* path, const Saved& saved) {
  return about_file(path, load(context, path, saved));
}

}  // namespace dist
