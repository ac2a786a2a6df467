// SPDX-License-Identifier: Apache-2.0
// The resolver for a spec that the caller passes.
#include "core/cluster/resolvers.hpp"

namespace dist {
namespace {

class SimpleResolver final : public ClusterResolver {
 public:
  SimpleResolver(Memory& memory, Ref<ClusterSpec> spec, const ResolverOptions& options)
      : ClusterResolver(memory, options), spec_(std::move(spec)) {}

  Status spec(Ref<ClusterSpec>* out) const override {
    *out = spec_;
    return kOk;
  }

 protected:
  const char* kind() const noexcept override { return "simple"; }
  const char* spec_source() const noexcept override { return "given when the resolver was made"; }
  Status find_task_type(FoundText*) const override { return kOk; }
  Status find_task_id(FoundNumber*) const override { return kOk; }
  Status find_rpc_layer(FoundText*) const override { return kOk; }
  Status find_address(const AskedTask& asked, FoundText* out) const override {
    if (asked.is_whole()) return task_address(asked, out);
    const char* const given = given_session_address();
    return with_layer(asked.rpc_layer, given == nullptr ? "" : given,
                      given == nullptr ? "default" : "given as an option", out);
  }

 private:
  const Ref<ClusterSpec> spec_;
};

}  // namespace

Status create_simple_resolver(Memory& memory, Ref<ClusterSpec> spec, const ResolverOptions& options,
                              Ref<ClusterResolver>* out) {
  *out = Ref<ClusterResolver>::adopt(make_counted<SimpleResolver>(memory, std::move(spec), options).take());
  return kOk;
}

}  // namespace dist
