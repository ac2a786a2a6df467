// SPDX-License-Identifier: Apache-2.0
// The resolver for workers that meet at one address. Creating it blocks until they have met.
#include "core/net/membership/rendezvous.hpp"

namespace dist {
namespace {

constexpr const char* kSource = "the workers that have met";

class RendezvousResolver final : public ClusterResolver {
 public:
  RendezvousResolver(Memory& memory, const ResolverOptions& options)
      : ClusterResolver(memory, options), place_(memory) {}

  Status meet(const RendezvousOptions& rendezvous, const MeetingLimits& limits) {
    return dist::meet(memory(), rendezvous, limits, &place_, &met_);
  }

  Status spec(Ref<ClusterSpec>* out) const override {
    *out = met_.spec;
    return kOk;
  }
  HeldPort* held_port() const noexcept override { return met_.port.get(); }

 protected:
  const char* kind() const noexcept override { return "rendezvous"; }
  const char* spec_source() const noexcept override { return kSource; }
  Status find_task_type(FoundText* out) const override { return out->set("worker", kSource, "task_type"); }
  Status find_task_id(FoundNumber* out) const override {
    return *out = {place_.rank, place_.rank_source}, kOk;
  }
  Status find_rpc_layer(FoundText* out) const override { return out->set("grpc", "default", "rpc_layer"); }
  Status find_address(const AskedTask& asked, FoundText* out) const override {
    return own_or_asked_address(asked, out);
  }

 private:
  RendezvousPlace place_;
  Met met_;
};

}  // namespace

Status create_rendezvous_resolver(Memory& memory, const RendezvousOptions& rendezvous,
                                  const MeetingLimits& limits, const ResolverOptions& options,
                                  Ref<ClusterResolver>* out) {
  Ref<RendezvousResolver> made = make_counted<RendezvousResolver>(memory, options);
  DIST_TRY(made->meet(rendezvous, limits));
  *out = Ref<ClusterResolver>::adopt(made.take());
  return kOk;
}

}  // namespace dist
