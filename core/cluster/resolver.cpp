// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/resolver.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/text.hpp"

namespace dist {
namespace {

constexpr const char* kOption = "given as an option";

// Appends "subject: text (source)". If the status is an error, appends the reason in place of text and
// source.
[[gnu::format(printf, 4, 5)]] void add_line(std::pmr::string* text, const char* subject, Status status,
                                            const char* format, ...) {
  char words[DIST_MAX_ADDRESS_BYTES + 128];
  if (status.ok()) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
  } else {
    copy_plain(words, last_error().message);
  }
  text->append(subject).append(status.ok() ? ": " : ": not known: ").append(words).append("\n");
}

void add_text(std::pmr::string* text, const char* subject, Status status, const FoundText& found) {
  if (status.ok() && !found.is_set) return add_line(text, subject, status, "%s", found.source);
  add_line(text, subject, status, "\"%s\" (%s)", found.text, found.source);
}

Status check_given(const char* text, std::size_t room, const char* what) noexcept {
  if (text == nullptr) return kOk;
  if (std::memchr(text, '\0', room) == nullptr) {
    return invalid_argument("%s has more than %zu bytes", what, room - 1);
  }
  return check_name(text, what);
}

}  // namespace

Status FoundText::set(std::string_view value, const char* from, const char* what) noexcept {
  DIST_TRY(check_address(value, what));
  std::memcpy(text, value.data(), value.size());
  text[value.size()] = '\0';
  is_set = true;
  source = from;
  return kOk;
}

Status check(const ResolverOptions& options) noexcept {
  DIST_TRY(check_given(options.task_type, DIST_MAX_JOB_NAME_BYTES, "task_type"));
  DIST_TRY(check_given(options.rpc_layer, DIST_MAX_ADDRESS_BYTES, "rpc_layer"));
  DIST_TRY(check_given(options.environment, DIST_MAX_ADDRESS_BYTES, "environment"));
  DIST_TRY(check_given(options.session_address, DIST_MAX_ADDRESS_BYTES, "session_address"));
  if (options.num_accelerators < 0) {
    return invalid_argument("`num_accelerators` is %d, but must be at least 0", options.num_accelerators);
  }
  if (options.tf_config != nullptr &&
      std::memchr(options.tf_config, '\0', DIST_MAX_CLUSTER_TEXT_BYTES) == nullptr) {
    return invalid_argument("`tf_config` has more than %d bytes", DIST_MAX_CLUSTER_TEXT_BYTES - 1);
  }
  return kOk;
}

Status join_address(const char* layer, const char* address, const char* source, FoundText* out) noexcept {
  char whole[2 * DIST_MAX_ADDRESS_BYTES + 4];
  const int length =
      std::snprintf(whole, sizeof whole, "%s%s%s", layer, *layer == '\0' ? "" : "://", address);
  return out->set({whole, static_cast<std::size_t>(length)}, source, "the address of a task");
}

const char* environment_text(const char* name) noexcept { return std::getenv(name); }

ClusterResolver::ClusterResolver(Memory& memory, const ResolverOptions& options)
    : Counted(memory),
      task_type_{options.task_type != nullptr,
                 {options.task_type == nullptr ? "" : options.task_type, &memory}},
      rpc_layer_{options.rpc_layer != nullptr,
                 {options.rpc_layer == nullptr ? "" : options.rpc_layer, &memory}},
      environment_{options.environment != nullptr,
                   {options.environment == nullptr ? "" : options.environment, &memory}},
      session_address_{options.session_address != nullptr,
                       {options.session_address == nullptr ? "" : options.session_address, &memory}},
      tf_config_{options.tf_config != nullptr,
                 {options.tf_config == nullptr ? "" : options.tf_config, &memory}},
      task_id_(options.task_id),
      num_accelerators_(options.num_accelerators) {}

Status ClusterResolver::task_type(FoundText* out) const {
  if (task_type_.given) return out->set(task_type_.text, kOption, "task_type");
  return find_task_type(out);
}

Status ClusterResolver::task_id(FoundNumber* out) const {
  if (task_id_ != DIST_TASK_UNSET) return *out = {task_id_, kOption}, kOk;
  return find_task_id(out);
}

Status ClusterResolver::rpc_layer(FoundText* out) const {
  if (rpc_layer_.given) return out->set(rpc_layer_.text, kOption, "rpc_layer");
  return find_rpc_layer(out);
}

Status ClusterResolver::environment(FoundText* out) const {
  if (environment_.given) return out->set(environment_.text, kOption, "environment");
  return find_environment(out);
}

Status ClusterResolver::address(const AskedTask& asked, FoundText* out) const {
  DIST_TRY(check_given(asked.type, DIST_MAX_JOB_NAME_BYTES, "task_type"));
  DIST_TRY(check_given(asked.rpc_layer, DIST_MAX_ADDRESS_BYTES, "rpc_layer"));
  return find_address(asked, out);
}

Status ClusterResolver::num_accelerators(const AskedTask& asked, FoundNumber* out) const {
  if (num_accelerators_ != 0) return *out = {num_accelerators_, kOption}, kOk;
  return find_num_accelerators(asked, out);
}

Status ClusterResolver::gpu_ids(FoundText* out) const { return out->set("", "default", "the GPUs"); }

Status ClusterResolver::find_environment(FoundText* out) const {
  return out->set("", "default", "environment");
}

Status ClusterResolver::find_num_accelerators(const AskedTask&, FoundNumber* out) const {
  return *out = {0, "default: devices are host CPUs"}, kOk;
}

Status ClusterResolver::with_layer(const char* asked_layer, const char* address, const char* source,
                                   FoundText* out) const {
  if (asked_layer != nullptr) return join_address(asked_layer, address, source, out);
  FoundText layer;
  DIST_TRY(rpc_layer(&layer));
  return join_address(layer.text, address, source, out);
}

Status ClusterResolver::task_address(const AskedTask& asked, FoundText* out) const {
  Ref<ClusterSpec> cluster;
  DIST_TRY(spec(&cluster));
  const char* address = nullptr;
  DIST_TRY(cluster->task_address(asked.type, asked.id, &address));
  return with_layer(asked.rpc_layer, address, "address of the task", out);
}

Status ClusterResolver::own_or_asked_address(const AskedTask& asked, FoundText* out) const {
  FoundText type;
  FoundNumber id;
  DIST_TRY(task_type(&type));
  DIST_TRY(task_id(&id));
  AskedTask task = asked;
  if (task.type == nullptr && type.is_set) task.type = type.text;
  if (task.id == DIST_TASK_UNSET) task.id = id.number;
  if (task.is_whole()) return task_address(task, out);
  return out->set("", "the task of this process is not known", "the address of a task");
}

std::pmr::string ClusterResolver::explain() const {
  std::pmr::string text(&memory());
  text.append("resolver: ").append(kind()).append("\n");
  Ref<ClusterSpec> cluster;
  const Status status = spec(&cluster);
  if (status.ok()) {
    text.append("cluster: ").append(cluster->json()).append(" (").append(spec_source()).append(")\n");
  } else {
    add_line(&text, "cluster", status, "%s", "");
  }
  FoundText found;
  add_text(&text, "task type", task_type(&found), found);
  FoundNumber number;
  const Status id = task_id(&number);
  if (id.ok() && number.number == DIST_TASK_UNSET) {
    add_line(&text, "task id", id, "not set");
  } else {
    add_line(&text, "task id", id, "%d (%s)", number.number, number.source);
  }
  add_text(&text, "RPC layer", rpc_layer(&(found = {})), found);
  add_text(&text, "environment", environment(&(found = {})), found);
  add_text(&text, "address to connect to", address({}, &(found = {})), found);
  const Status accelerators = num_accelerators({}, &(number = {}));
  add_line(&text, "accelerators", accelerators, "%d (%s)", number.number, number.source);
  return text;
}

}  // namespace dist
