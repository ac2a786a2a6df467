// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory_resource>
#include <optional>
#include <vector>

#include "core/base/os/file.hpp"
#include "core/base/tensor.hpp"
#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/reader.hpp"
#include "core/checkpoint/shards.hpp"
#include "core/checkpoint/writer.hpp"
#include "core/strategy/checkpoint.hpp"
#include "core/strategy/saved_variable.hpp"

namespace dist {
namespace {

constexpr char kTag[] = "checkpoint";

// `save`: the number of a save with shards; 0: there are none.
Status add_texts(const Saved& saved, std::span<const StoredText> given, uint64_t save, NewTexts& texts) {
  for (const StoredText& text : given) DIST_TRY(texts.add(text.key, text.text, false));
  if (save != 0) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016" PRIx64, save);
    DIST_TRY(texts.add(kSaveText, digits, true));
  }
  if (saved.position == nullptr) return kOk;
  for (const PositionField& field : kPosition) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%" PRId64, saved.position->*field.field);
    DIST_TRY(texts.add(field.key, digits, true));
  }
  return kOk;
}

// Writes a file with the variables that `mine` selects. All workers read the other variables as well, because
// values that are computed from all copies need all workers.
template <class Mine>
Status write_file(const CrossReplica& context, const char* path, const Saved& saved,
                  std::span<const StoredText> texts, uint64_t save, const Mine& mine) {
  CheckpointWriter writer(*context.memory);
  for (std::size_t i = 0; i < saved.variables.size(); ++i) {
    DIST_TRY(check_variable(context, *saved.variables[i]));
    if (mine(i)) DIST_TRY(writer.add_tensor(saved.name(i), saved.variables[i]->first_copy()));
  }
  DIST_TRY(add_texts(saved, texts, save, writer.texts()));
  DIST_TRY(writer.create(path));
  std::size_t written = 0;
  for (std::size_t i = 0; i < saved.variables.size(); ++i) {
    Variable& variable = *saved.variables[i];
    ValueRef computed;
    if (is_computed(variable)) DIST_TRY(read(context, variable, &computed));
    if (mine(i))
      DIST_TRY(writer.write(written++, computed ? computed->tensor().data : variable.first_copy().data));
  }
  return writer.commit();
}

// Takes part in a save on a worker that writes nothing.
Status take_part(const CrossReplica& context, const Saved& saved) {
  for (Variable* const variable : saved.variables) {
    DIST_TRY(check_variable(context, *variable));
    ValueRef computed;
    if (is_computed(*variable)) DIST_TRY(read(context, *variable, &computed));
  }
  return kOk;
}

// The other workers return when the first one has reached this point.
Status has_written(AcrossWorkers* workers) {
  if (workers == nullptr) return kOk;
  int32_t written = 1;
  dist_tensor tensor{&written, DIST_I32, 0, nullptr, nullptr};
  return workers->broadcast(tensor, kTag, 0);
}

// ---- One file ----

Status save_whole(const CrossReplica& context, const char* path, const Saved& saved,
                  std::span<const StoredText> texts) {
  AcrossWorkers* const workers = context.workers;
  if (workers == nullptr || workers->me() == 0) {
    const bool replaces_shards = is_index(path);
    DIST_TRY(write_file(context, path, saved, texts, 0, [](std::size_t) { return true; }));
    if (replaces_shards) remove_shards_but(path, 0);
  } else {
    DIST_TRY(take_part(context, saved));
  }
  return has_written(workers);
}

// ---- Shards ----

class ShardedSave {
 public:
  ShardedSave(const CrossReplica& context, const char* path, const Saved& saved,
              std::span<const StoredText> texts)
      : context_(context),
        path_(path),
        saved_(saved),
        texts_(texts),
        shard_of_(context.memory),
        shards_(context.memory) {}
  ShardedSave(const ShardedSave&) = delete;
  ShardedSave& operator=(const ShardedSave&) = delete;
  // Worker 0 keeps only the shards of the index that is in place now.
  ~ShardedSave() {
    if (!shares_ || me() != 0) return;
    if (index_.in_place()) {
      remove_shards_but(path_, save_);
    } else {
      remove_shards_of(path_, save_);
    }
  }

  Status run() {
    DIST_TRY(check_names());
    if (me() == 0) DIST_TRY(index_.create(path_));
    DIST_TRY(agree_on_save());
    shares_ = true;
    share();
    DIST_TRY(write());
    return has_written(context_.workers);
  }

 private:
  int32_t me() const noexcept { return context_.workers == nullptr ? 0 : context_.workers->me(); }
  int32_t num_workers() const noexcept {
    return context_.workers == nullptr ? 1 : context_.workers->num_workers();
  }

  // Checks names across all shards; names within a shard are checked when it is written.
  Status check_names() const {
    std::pmr::vector<const char*> names(context_.memory);
    for (std::size_t i = 0; i < saved_.variables.size(); ++i) names.push_back(saved_.name(i));
    constexpr auto kItself = [](const char* name) { return name; };
    NameIndex by_name(context_.memory);
    sort_by_name(names, by_name, kItself);
    const char* const name = twice(names, by_name, kItself);
    return name == nullptr ? kOk : called_twice(name);
  }

  Status agree_on_save() {
    save_ = std::max<uint64_t>(unpredictable_number(), 1);
    if (context_.workers == nullptr) return kOk;
    auto number = static_cast<int64_t>(save_);
    dist_tensor tensor{&number, DIST_I64, 0, nullptr, nullptr};
    DIST_TRY(context_.workers->broadcast(tensor, kTag, 1));
    save_ = static_cast<uint64_t>(number);
    return kOk;
  }

  // Decides which worker writes which variable, and the shards of the workers that write any.
  void share() {
    std::pmr::vector<uint64_t> bytes(context_.memory);
    for (const Variable* const variable : saved_.variables) bytes.push_back(variable->bytes());
    const auto worker_of = share_out(*context_.memory, bytes, num_workers());
    std::pmr::vector<int32_t> shard_of_worker(static_cast<std::size_t>(num_workers()), -1, context_.memory);
    for (const int32_t worker : worker_of) shard_of_worker[static_cast<std::size_t>(worker)] = 0;
    int32_t n = 0;
    for (int32_t& shard : shard_of_worker) {
      if (shard == 0) shard = n++;
    }
    for (const int32_t worker : worker_of)
      shard_of_.push_back(shard_of_worker[static_cast<std::size_t>(worker)]);
    for (int32_t shard = 0; shard < n; ++shard)
      shards_.push_back(shard_path(*context_.memory, path_, save_, shard, n));
    mine_ = shard_of_worker[static_cast<std::size_t>(me())];
  }

  Status write() {
    if (mine_ < 0) {
      DIST_TRY(take_part(context_, saved_));
    } else {
      const char* const shard = shards_[static_cast<std::size_t>(mine_)].c_str();
      DIST_TRY(write_file(context_, shard, saved_, texts_, save_,
                          [&](std::size_t i) { return shard_of_[i] == mine_; }));
    }
    DIST_TRY(wait_for_all());
    if (me() != 0) return kOk;
    DIST_TRY(check_shards());
    return write_index();
  }

  Status wait_for_all() {
    if (context_.workers == nullptr) return kOk;
    int64_t none = 0;
    return context_.workers->largest({&none, 1}, kTag, 2);
  }

  // Checks that worker 0 can see all shards, each with the expected variables.
  Status check_shards() const {
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      const char* const path = shards_[shard].c_str();
      const Status status = about_file(name_of_path(path), check_shard(path, static_cast<int32_t>(shard)));
      if (!status.ok()) return reworded("%s. All workers must see the same folder.", last_error().message);
    }
    return kOk;
  }

  Status check_shard(const char* path, int32_t shard) const {
    Ref<Checkpoint> file;
    DIST_TRY(Checkpoint::open(*context_.memory, path, &file));
    for (std::size_t i = 0; i < shard_of_.size(); ++i) {
      FoundTensor found;
      if (shard_of_[i] == shard) DIST_TRY(file->find(saved_.name(i), &found));
    }
    return kOk;
  }

  Status write_index() {
    std::pmr::vector<NewIndexEntry> entries(context_.memory);
    uint64_t bytes = 0;
    for (std::size_t i = 0; i < shard_of_.size(); ++i) {
      const auto& shard = shards_[static_cast<std::size_t>(shard_of_[i])];
      entries.push_back({saved_.name(i), name_of_path(shard.c_str())});
      bytes += saved_.variables[i]->bytes();
    }
    NewTexts texts(*context_.memory);
    DIST_TRY(add_texts(saved_, texts_, save_, texts));
    std::pmr::string text(context_.memory);
    DIST_TRY(make_index(entries, texts, bytes, &text));
    DIST_TRY(index_.write_at(0, text.data(), text.size()));
    return index_.commit();
  }

  const CrossReplica& context_;
  const char* path_;
  const Saved& saved_;
  std::span<const StoredText> texts_;
  NewFile index_;  // on worker 0
  uint64_t save_ = 0;
  bool shares_ = false;                 // the workers know the number of the save
  std::pmr::vector<int32_t> shard_of_;  // for each variable
  std::pmr::vector<std::pmr::string> shards_;
  int32_t mine_ = -1;
};

}  // namespace

Status save_checkpoint(const CrossReplica& context, const char* path, const Saved& saved,
                       std::span<const StoredText> texts) {
  return about_file(path, saved.sharded ? ShardedSave(context, path, saved, texts).run()
                                        : save_whole(context, path, saved, texts));
}

}  // namespace dist
