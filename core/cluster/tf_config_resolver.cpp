// SPDX-License-Identifier: Apache-2.0
// The resolver for TF_CONFIG. It reads the variable for each question, and parses it if it has changed since
// the last one.
#include <cstdio>
#include <mutex>

#include "core/base/text.hpp"
#include "core/cluster/integers.hpp"
#include "core/cluster/resolvers.hpp"

namespace dist {
namespace {

constexpr const char* kVariable = "TF_CONFIG";

// Returns the member of an object, or NULL if it has no such member.
Status look_up(const JsonTree& tree, const JsonTree::Value& value, std::string_view key, const char* what,
               const JsonTree::Value** out) noexcept {
  *out = nullptr;
  if (value.kind != JsonKind::kObject) {
    return invalid_argument("%s is %s, but must be an object", what, name_of(value.kind));
  }
  *out = tree.find(value, key);
  return kOk;
}

class TfConfigResolver final : public ClusterResolver {
 public:
  TfConfigResolver(Memory& memory, const ResolverOptions& options)
      : ClusterResolver(memory, options), text_(&memory), tree_(&memory) {}

  Status spec(Ref<ClusterSpec>* out) const override {
    const std::scoped_lock lock(reading_);
    DIST_TRY(read());
    const JsonTree::Value* cluster = nullptr;
    DIST_TRY(look_up(tree_, tree_.root(), "cluster", kVariable, &cluster));
    if (cluster == nullptr) return SpecBuilder(memory()).finish(out);
    return ClusterSpec::from_json(memory(), tree_, *cluster, "\"cluster\" in TF_CONFIG", out);
  }

 protected:
  const char* kind() const noexcept override { return kVariable; }
  const char* spec_source() const noexcept override { return source(); }

  Status find_task_type(FoundText* out) const override {
    const std::scoped_lock lock(reading_);
    const JsonTree::Value* type = nullptr;
    DIST_TRY(find_in_task("type", &type));
    constexpr const char* kWhat = "the type of the task in TF_CONFIG";
    if (type != nullptr && type->text.size() >= DIST_MAX_JOB_NAME_BYTES) {
      return invalid_argument("%s has more than %d bytes", kWhat, DIST_MAX_JOB_NAME_BYTES - 1);
    }
    return set_text(type, kWhat, out);
  }

  Status find_task_id(FoundNumber* out) const override {
    const std::scoped_lock lock(reading_);
    const JsonTree::Value* index = nullptr;
    DIST_TRY(find_in_task("index", &index));
    if (index == nullptr) return kOk;
    int32_t number = 0;
    DIST_TRY(int_of(*index, "the index of the task in TF_CONFIG", &number));
    if (number == DIST_TASK_UNSET) {
      return invalid_argument("the index of the task in TF_CONFIG is %d, which means that no task is set",
                              number);
    }
    *out = {number, source()};
    return kOk;
  }

  Status find_rpc_layer(FoundText* out) const override { return find_text("rpc_layer", out); }
  Status find_environment(FoundText*) const override { return kOk; }

  Status find_address(const AskedTask& asked, FoundText* out) const override {
    DIST_TRY(find_text("session_master", out));
    if (out->is_set) return kOk;
    Ref<ClusterSpec> cluster;
    DIST_TRY(spec(&cluster));
    const auto jobs = cluster->jobs();
    if (jobs.empty() || (jobs.size() == 1 && cluster->list_size(jobs[0]) == 1)) {
      return out->set("", "the cluster has at most one task", "the address of a task");
    }
    FoundText type;
    if (asked.type == nullptr) DIST_TRY(task_type(&type));
    FoundNumber id{asked.id};
    if (asked.id == DIST_TASK_UNSET) DIST_TRY(task_id(&id));
    const char* const job = asked.type != nullptr ? asked.type : type.is_set ? type.text : nullptr;
    if (job != nullptr && id.number == DIST_TASK_UNSET && cluster->find(job) != nullptr) {
      return invalid_argument(
          "\"index\" is missing in \"task\" of TF_CONFIG, so the task of job \"%s\" is unknown",
          Shown(job).c_str());
    }
    const char* address = nullptr;
    DIST_TRY(cluster->task_address(job, id.number, &address));
    return with_layer(asked.rpc_layer, address, "address of the task", out);
  }

  // The task must be one of the cluster. The resolver behaves as if the task's devices had been listed.
  Status find_num_accelerators(const AskedTask& asked, FoundNumber* out) const override {
    FoundText where;
    DIST_TRY(find_address({asked.type, asked.id, nullptr}, &where));
    return ClusterResolver::find_num_accelerators(asked, out);
  }

 private:
  const char* source() const noexcept {
    return given_tf_config() != nullptr ? "TF_CONFIG, given as an option" : "environment variable TF_CONFIG";
  }

  // `reading_` must be held, here and for the next function.
  Status read() const {
    const char* text = given_tf_config();
    if (text == nullptr) text = environment_text(kVariable);
    if (text == nullptr) text = "{}";
    if (parsed_ && text_ == text) return kOk;
    parsed_ = false;
    text_ = text;
    DIST_TRY(tree_.parse(text, kVariable));
    parsed_ = true;
    return kOk;
  }

  Status find_in_task(std::string_view key, const JsonTree::Value** out) const {
    DIST_TRY(read());
    const JsonTree::Value* task = nullptr;
    DIST_TRY(look_up(tree_, tree_.root(), "task", kVariable, &task));
    *out = nullptr;
    return task == nullptr ? kOk : look_up(tree_, *task, key, "\"task\" in TF_CONFIG", out);
  }

  // Finds a member that is a text. A null means that it is not set.
  Status find_text(const char* key, FoundText* out) const {
    const std::scoped_lock lock(reading_);
    DIST_TRY(read());
    const JsonTree::Value* value = nullptr;
    DIST_TRY(look_up(tree_, tree_.root(), key, kVariable, &value));
    char what[64];
    std::snprintf(what, sizeof what, "\"%s\" in TF_CONFIG", key);
    return set_text(value, what, out);
  }

  Status set_text(const JsonTree::Value* value, const char* what, FoundText* out) const noexcept {
    if (value == nullptr || value->kind == JsonKind::kNull) return kOk;
    if (value->kind != JsonKind::kText) {
      return invalid_argument("%s is %s, but must be a string", what, name_of(value->kind));
    }
    return out->set(value->text, source(), what);
  }

  mutable std::mutex reading_;
  mutable bool parsed_ = false;  // `tree_` is the result of parsing `text_`
  mutable std::pmr::string text_;
  mutable JsonTree tree_;
};

}  // namespace

Status create_tf_config_resolver(Memory& memory, const ResolverOptions& options, Ref<ClusterResolver>* out) {
  *out = Ref<ClusterResolver>::adopt(make_counted<TfConfigResolver>(memory, options).take());
  return kOk;
}

}  // namespace dist
