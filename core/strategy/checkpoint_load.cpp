// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstring>
#include <memory_resource>
#include <vector>

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
  return invalid_argument("tensor \"%s\" is %s%s%s, variable \"%s\" is %s; dtype and shape must be equal",
                          Shown(tensor.name).c_str(), is.dtype == 0 ? tensor.dtype->name : "",
                          is.dtype == 0 ? ", " : "", is_text, Shown(variable.name()).c_str(), wanted_text);
}

Status read_position(const Checkpoint& file, Position* out) noexcept {
  Position position;
  for (const PositionField& field : kPosition) {
    const char* const text = file.text(field.key);
    if (text == nullptr) {
      return fail(DIST_NOT_FOUND, "the file has no position of the input: \"%s\" is missing", field.key);
    }
    const char* const end = text + std::strlen(text);
    const auto read = std::from_chars(text, end, position.*field.field);
    if (read.ec != std::errc() || read.ptr != end || position.*field.field < 0)
      return fail(DIST_DATA_LOSS, "\"%s\" is \"%s\"; it must be a number", field.key, Shown(text).c_str());
  }
  *out = position;
  return kOk;
}

void share_same(const CrossReplica& context, Variable& variable) noexcept {
  const auto copy = [&](LocalReplica r) {
    if (r != LocalReplica{0} && variable.bytes() != 0)
      std::memcpy(variable.component(r).data, variable.first_copy().data, variable.bytes());
  };
  if (for_each_copy(context, variable, copy).ok()) return;
  for (int32_t r = 1; r < variable.num_copies(); ++r)
    copy(LocalReplica{r});  // oneTBB had no memory to share it out
}

// When the first variable has been written, nothing may fail any more.
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
  std::pmr::vector<std::byte> room(TensorFile::kRoomBytes, context.memory);
  for (const FoundTensor& found : tensors) DIST_TRY(found.file->verify(*found.tensor, room.data()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Variable& variable = *saved.variables[i];
    DIST_TRY(tensors[i].file->read(*tensors[i].tensor, variable.first_copy().data));
    if (is_sum(variable)) {
      share_sum(context.replicas, variable);
    } else {
      share_same(context, variable);
    }
  }
  if (saved.position != nullptr) *saved.position = position;
  return kOk;
}

}  // namespace

Status load_checkpoint(const CrossReplica& context, const char* path, const Saved& saved) {
  return about_file(path, load(context, path, saved));
}

}  // namespace dist
