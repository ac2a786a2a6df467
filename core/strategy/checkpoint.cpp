// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/checkpoint.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/reader.hpp"
#include "core/checkpoint/writer.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/assign.hpp"
#include "core/cross_replica/copies.hpp"

namespace dist {
namespace {

struct PositionField {
  const char* key;
  int64_t Position::*field;
};
constexpr PositionField kPosition[] = {{"libdist.position.pass", &Position::pass},
                                       {"libdist.position.elements", &Position::elements},
                                       {"libdist.position.examples", &Position::examples},
                                       {"libdist.position.batches", &Position::batches}};

bool is_sum(const Variable& variable) noexcept {
  return variable.sync_on_read() && variable.aggregation() == DIST_AGGREGATION_SUM;
}

// Whether the value is one that its copies make together, not one of them.
bool is_computed(const Variable& variable) noexcept {
  return variable.sync_on_read() && variable.aggregation() != DIST_AGGREGATION_ONLY_FIRST_REPLICA;
}

// What has a value.
Status check_variable(const CrossReplica& context, Variable& variable) {
  DIST_TRY(check_owner(context, variable));
  if (is_sum(variable)) return check_op(DIST_REDUCE_SUM, variable.dtype());
  ValueRef none;
  const bool has_none = is_computed(variable) && variable.aggregation() == DIST_AGGREGATION_NONE;
  return has_none ? read(context, variable, &none) : kOk;  // which says why
}

// ---- Saving ----

Status add_all(const CrossReplica& context, const Saved& saved, std::span<const StoredText> texts,
               CheckpointWriter& writer) {
  for (std::size_t i = 0; i < saved.variables.size(); ++i) {
    DIST_TRY(check_variable(context, *saved.variables[i]));
    DIST_TRY(writer.add_tensor(saved.name(i), saved.variables[i]->first_copy()));
  }
  for (const StoredText& text : texts) DIST_TRY(writer.add_text(text.key, text.text, false));
  if (saved.position == nullptr) return kOk;
  for (const PositionField& field : kPosition) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%" PRId64, saved.position->*field.field);
    DIST_TRY(writer.add_text(field.key, digits, true));
  }
  return kOk;
}

// Where another worker writes the file: it gets what this one's copies have to do with it.
Status take_part(const CrossReplica& context, const Saved& saved) {
  for (Variable* const variable : saved.variables) {
    DIST_TRY(check_variable(context, *variable));
    ValueRef computed;
    if (is_computed(*variable)) DIST_TRY(read(context, *variable, &computed));
  }
  return kOk;
}

Status write_file(const CrossReplica& context, const char* path, const Saved& saved,
                  std::span<const StoredText> texts) {
  CheckpointWriter writer(*context.memory);
  DIST_TRY(add_all(context, saved, texts, writer));
  DIST_TRY(writer.create(path));
  for (std::size_t i = 0; i < saved.variables.size(); ++i) {
    Variable& variable = *saved.variables[i];
    ValueRef computed;
    if (is_computed(variable)) DIST_TRY(read(context, variable, &computed));
    DIST_TRY(writer.write(i, computed ? computed->tensor().data : variable.first_copy().data));
  }
  return writer.commit();
}

// Of several workers the first one writes, and the others return when it has.
Status save(const CrossReplica& context, const char* path, const Saved& saved,
            std::span<const StoredText> texts) {
  AcrossWorkers* const workers = context.workers;
  if (workers == nullptr || workers->me() == 0) {
    DIST_TRY(write_file(context, path, saved, texts));
  } else {
    DIST_TRY(take_part(context, saved));
  }
  if (workers == nullptr) return kOk;
  int32_t written = 1;
  dist_tensor tensor{&written, DIST_I32, 0, nullptr, nullptr};
  return workers->broadcast(tensor, "checkpoint", 0);
}

// ---- Loading ----

Status check_fit(const Checkpoint& file, const StoredTensor& tensor, const Variable& variable) noexcept {
  const dist_tensor is = file.header().spec(tensor);
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

Status read_position(const Header& header, Position* out) noexcept {
  Position position;
  for (const PositionField& field : kPosition) {
    const char* const text = header.text(field.key);
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
  std::pmr::vector<const StoredTensor*> tensors(saved.variables.size(), context.memory);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    DIST_TRY(check_variable(context, *saved.variables[i]));
    DIST_TRY(file->find(saved.name(i), &tensors[i]));
    DIST_TRY(check_fit(*file, *tensors[i], *saved.variables[i]));
  }
  Position position;
  if (saved.position != nullptr) DIST_TRY(read_position(file->header(), &position));
  std::pmr::vector<std::byte> room(Checkpoint::kRoomBytes, context.memory);
  for (const StoredTensor* tensor : tensors) DIST_TRY(file->verify(*tensor, room.data()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Variable& variable = *saved.variables[i];
    DIST_TRY(file->read(*tensors[i], variable.first_copy().data));
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

Status save_checkpoint(const CrossReplica& context, const char* path, const Saved& saved,
                       std::span<const StoredText> texts) {
  return about_file(path, save(context, path, saved, texts));
}

Status load_checkpoint(const CrossReplica& context, const char* path, const Saved& saved) {
  return about_file(path, load(context, path, saved));
}

}  // namespace dist
