// SPDX-License-Identifier: Apache-2.0
// The resolver defined by functions of the host. Their results are checked like any text from outside.
#include <cstring>

#include "core/base/host_call.hpp"
#include "core/base/text.hpp"
#include "core/cluster/resolvers.hpp"

namespace dist {
namespace {

constexpr const char* kSource = "a host function";

class HostFunctionsResolver final : public ClusterResolver {
 public:
  HostFunctionsResolver(Memory& memory, const ResolverOptions& options) : ClusterResolver(memory, options) {}
  ~HostFunctionsResolver() override {
    if (host_.release != nullptr) (void)survived([&] { host_.release(host_.user_data); });
  }
  // Call this when creation cannot fail any more. From then on, the destructor calls `release`.
  void take(const HostResolver& host) noexcept { host_ = host; }

  Status spec(Ref<ClusterSpec>* out) const override {
    dist_cluster_spec* handle = nullptr;
    const Status status = called("spec", [&] { return host_.spec(&handle, host_.user_data); });
    const Ref<ClusterSpec> made = Ref<ClusterSpec>::adopt(reinterpret_cast<ClusterSpec*>(handle));
    DIST_TRY(status);
    if (!made) return invalid_argument("the host function spec returned `DIST_OK`, but set no cluster spec");
    *out = made;
    return kOk;
  }

 protected:
  const char* kind() const noexcept override { return "host functions"; }
  const char* spec_source() const noexcept override { return kSource; }
  Status find_task_type(FoundText* out) const override { return text(host_.task_type, "task_type", out); }
  Status find_rpc_layer(FoundText* out) const override { return text(host_.rpc_layer, "rpc_layer", out); }
  Status find_environment(FoundText* out) const override {
    if (host_.environment == nullptr) return ClusterResolver::find_environment(out);
    return text(host_.environment, "environment", out);
  }
  Status find_task_id(FoundNumber* out) const override {
    if (host_.task_id == nullptr) return kOk;
    int32_t id = DIST_TASK_UNSET;
    DIST_TRY(called("task_id", [&] { return host_.task_id(&id, host_.user_data); }));
    *out = {id, kSource};
    return kOk;
  }
  Status find_address(const AskedTask& asked, FoundText* out) const override {
    if (host_.address != nullptr) {
      char room[DIST_MAX_ADDRESS_BYTES] = "";
      DIST_TRY(called("address", [&] {
        return host_.address(asked.type, asked.id, asked.rpc_layer, room, sizeof room, host_.user_data);
      }));
      return take_text(room, "address", out);
    }
    if (asked.is_whole()) return task_address(asked, out);
    return with_layer(asked.rpc_layer, "", "default", out);
  }
  Status find_num_accelerators(const AskedTask& asked, FoundNumber* out) const override {
    if (host_.num_accelerators == nullptr) return ClusterResolver::find_num_accelerators(asked, out);
    int32_t number = 0;
    DIST_TRY(called("num_accelerators",
                    [&] { return host_.num_accelerators(asked.type, asked.id, &number, host_.user_data); }));
    if (number < 0)
      return invalid_argument("the host function `num_accelerators` returned %d, but must return 0 or more",
                              number);
    *out = {number, kSource};
    return kOk;
  }

 private:
  // If the function fails, its message is kept if it has recorded one.
  template <class Call>
  static Status called(const char* name, Call&& call) {
    const uint64_t before = failures_on_this_thread();
    const Status status(guarded(name, call));
    if (status.ok() || failures_on_this_thread() != before) return status;
    return fail(status.code(), "the host function %s failed with %s", name, status_name(status.code()));
  }

  static Status take_text(const char (&room)[DIST_MAX_ADDRESS_BYTES], const char* what, FoundText* out) {
    if (std::memchr(room, '\0', sizeof room) == nullptr) {
      return invalid_argument("the host function %s wrote a string without a terminating NUL", what);
    }
    return out->set(room, kSource, what);
  }

  using TextFn = dist_status (*)(char*, std::size_t, int32_t*, void*);
  Status text(TextFn fn, const char* what, FoundText* out) const {
    if (fn == nullptr) return kOk;
    char room[DIST_MAX_ADDRESS_BYTES] = "";
    int32_t is_set = 1;
    DIST_TRY(called(what, [&] { return fn(room, sizeof room, &is_set, host_.user_data); }));
    return is_set == 0 ? kOk : take_text(room, what, out);
  }

  HostResolver host_;
};

}  // namespace

Status create_host_resolver(Memory& memory, const HostResolver& functions, const ResolverOptions& options,
                            Ref<ClusterResolver>* out) {
  if (functions.spec == nullptr) {
    return invalid_argument(
        "`functions->spec` is `NULL`, but a resolver of host functions needs at least that one");
  }
  Ref<HostFunctionsResolver> made = make_counted<HostFunctionsResolver>(memory, options);
  made->take(functions);
  *out = Ref<ClusterResolver>::adopt(made.take());
  return kOk;
}

}  // namespace dist
