// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/reader.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/os/file.hpp"
#include "core/base/tensor.hpp"
#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/shards.hpp"

namespace dist {

// A mapped file. Each value whose elements are in the mapping has a reference to it.
class Checkpoint::Mapping final : public Counted {
 public:
  Mapping(Memory& memory, MappedFile file) noexcept : Counted(memory), file_(std::move(file)) {}
  const std::byte* data() const noexcept { return file_.data(); }
  static void let_go(void* self) { static_cast<Mapping*>(self)->release(); }

 private:
  ~Mapping() override = default;
  const MappedFile file_;
};

Checkpoint::Checkpoint(Memory& memory)
    : Counted(memory), index_(memory), files_(&memory), tensors_(&memory), mappings_(&memory) {}

Checkpoint::~Checkpoint() = default;

Status Checkpoint::open(Memory& memory, const char* path, Ref<Checkpoint>* out) {
  uint32_t before = 0;
  for (;;) {
    auto checkpoint = make_counted<Checkpoint>(memory);
    const Status status = checkpoint->open_file(path);
    if (status.ok()) {
      *out = std::move(checkpoint);
      return kOk;
    }
    // If another save has completed since, its index has replaced the one that was read, and the shards of
    // that one are gone.
    const bool lost_shard = checkpoint->has_index_ && status.code() == DIST_NOT_FOUND;
    if (!lost_shard || checkpoint->index_.checksum() == before) return status;
    before = checkpoint->index_.checksum();
  }
}

Status Checkpoint::open_file(const char* path) {
  InputFile file;
  DIST_TRY(file.open(path));
  char first[kKindBytes] = "";
  if (file.size() >= static_cast<int64_t>(sizeof first)) DIST_TRY(file.read_at(0, first, sizeof first));
  if (!begins_index(first)) {
    files_.emplace_back(memory());
    DIST_TRY(files_[0].open(std::move(file)));
    return find_tensors();
  }
  const auto size = static_cast<uint64_t>(file.size());
  if (size > kMaxHeaderBytes)
    return fail(DIST_DATA_LOSS, "is not a safetensors file, and is too long for an index");
  DIST_TRY(file.read_at(0, index_.make_room(static_cast<std::size_t>(size)), static_cast<std::size_t>(size)));
  DIST_TRY(index_.parse());
  has_index_ = true;
  DIST_TRY(open_shards(path));
  return find_tensors();
}

namespace {

// The length of the folder in the path, including the slash.
std::size_t folder_bytes(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? 0 : static_cast<std::size_t>(slash + 1 - path);
}

}  // namespace

// The shards are in the folder of the given path, like other readers expect. If the path is a symbolic link
// to the index, they may be in the folder of the index instead.
Status Checkpoint::open_shards(const char* given) {
  char path[4096];  // the kernel accepts no longer path
  (void)follow_links(given, path, sizeof path);
  std::pmr::string shard(&memory());
  const auto open_at = [&](const char* folder_of, const char* name, InputFile* file) {
    return file->open(shard.assign(folder_of, folder_bytes(folder_of)).append(name).c_str());
  };
  // libdist writes this text. Without the comparison, a shard of another save with the same tensors would be
  // accepted.
  const char* const save = index_.text(kSaveText);
  files_.reserve(index_.files().size());
  for (const char* const name : index_.files()) {
    InputFile file;
    Status opened = open_at(given, name, &file);
    if (opened.code() == DIST_NOT_FOUND) opened = open_at(path, name, &file);
    DIST_TRY(about_file(name, opened));
    files_.emplace_back(memory());
    DIST_TRY(about_file(name, files_.back().open(std::move(file))));
    const char* const saved_by = files_.back().header().text(kSaveText);
    if (save != nullptr && (saved_by == nullptr || std::strcmp(save, saved_by) != 0)) {
      return fail(DIST_DATA_LOSS,
                  "\"%s\" and the index belong to different checkpoints. Restore the original shard.",
                  Shown(name).c_str());
    }
  }
  return kOk;
}

Status Checkpoint::find_tensors() {
  if (!has_index_) {
    const auto all = files_[0].header().tensors();
    tensors_.reserve(all.size());
    for (const StoredTensor& tensor : all) tensors_.push_back({&files_[0], &tensor});
    return kOk;
  }
  tensors_.reserve(index_.entries().size());
  for (const IndexEntry& entry : index_.entries()) {
    const TensorFile& file = files_[entry.number];
    const StoredTensor* const tensor = file.header().find(entry.name);
    if (tensor == nullptr) {
      return fail(DIST_DATA_LOSS, "tensor \"%s\" is not in \"%s\", although the index lists it there",
                  Shown(entry.name).c_str(), Shown(entry.file).c_str());
    }
    tensors_.push_back({&file, tensor});
  }
  return kOk;
}

std::span<const StoredText> Checkpoint::texts() const noexcept {
  return has_index_ ? index_.texts() : files_[0].header().texts();
}

const char* Checkpoint::text(const char* key) const noexcept {
  return has_index_ ? index_.text(key) : files_[0].header().text(key);
}

Status Checkpoint::find(const char* name, FoundTensor* out) const noexcept {
  if (has_index_) {
    if (const IndexEntry* const entry = index_.find(name)) {
      *out = tensors_[static_cast<std::size_t>(entry - index_.entries().data())];
      return kOk;
    }
  } else if (const StoredTensor* const tensor = files_[0].header().find(name)) {
    *out = {&files_[0], tensor};
    return kOk;
  }
  char others[400] = "none";
  std::size_t used = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(tensors_.size(), 4) && used < sizeof others; ++i) {
    used +=
        static_cast<std::size_t>(std::snprintf(others + used, sizeof others - used, "%s\"%s\"",
                                               i == 0 ? "" : ", ", Shown(tensors_[i].tensor->name).c_str()));
  }
  return fail(DIST_NOT_FOUND, "the file has no tensor \"%s\". It has %zu: %s%s", Shown(name).c_str(),
              tensors_.size(), others, tensors_.size() > 4 ? ", ..." : "");
}

namespace {

// The dtype and shape of the value of a tensor. If libdist does not support the dtype, the value consists of
// bytes; it has the tensor's shape if each element is one byte. `room` receives the number of bytes.
dist_tensor value_spec(const FoundTensor& tensor, int64_t* room) noexcept {
  dist_tensor spec = tensor.spec();
  if (spec.dtype != 0) return spec;
  spec.dtype = DIST_U8;
  if (tensor.tensor->dtype->bits == 8) return spec;
  *room = static_cast<int64_t>(tensor.tensor->end - tensor.tensor->begin);
  spec.ndim = 1;
  spec.shape = room;
  return spec;
}

}  // namespace

Status Checkpoint::read(const FoundTensor& tensor, ValueRef* out) const {
  int64_t room = 0;
  const dist_tensor spec = value_spec(tensor, &room);
  ValueRef value;
  DIST_TRY(Value::copy_tensor(memory(), spec, &value));
  DIST_TRY(tensor.file->read(*tensor.tensor, value->tensor().data));
  *out = std::move(value);
  return kOk;
}

Status Checkpoint::mapping_of(const TensorFile& file, Ref<Mapping>* out) const {
  const auto number = static_cast<std::size_t>(&file - files_.data());
  const std::scoped_lock lock(mutex_);
  if (mappings_.empty()) mappings_.resize(files_.size());
  Ref<Mapping>& kept = mappings_[number];
  if (!kept) {
    MappedFile mapped;
    const Status status = file.map(&mapped);
    if (!status.ok()) return fail(status.code(), "the file %s", last_error().message);
    kept = make_counted<Mapping>(memory(), std::move(mapped));
  }
  *out = kept;
  return kOk;
}

Status Checkpoint::map(const FoundTensor& tensor, bool verify, ValueRef* out) const {
  int64_t room = 0;
  dist_tensor spec = value_spec(tensor, &room);
  const std::size_t offset = tensor.file->offset(*tensor.tensor);
  const bool nothing = tensor.tensor->begin == tensor.tensor->end;
  // A mapping begins at a page boundary.
  if (nothing || offset % dtype_size(spec.dtype) != 0) return read(tensor, out);
  Ref<Mapping> mapping;
  DIST_TRY(mapping_of(*tensor.file, &mapping));
  const std::byte* const data = mapping->data() + offset;
  if (verify) DIST_TRY(tensor.file->verify_at(*tensor.tensor, data));
  spec.data = const_cast<std::byte*>(data);
  DIST_TRY(Value::wrap_tensor(memory(), spec, Mapping::let_go, mapping.get(), out));
  (void)mapping.take();  // the value owns it now
  return kOk;
}

}  // namespace dist
