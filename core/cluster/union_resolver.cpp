// SPDX-License-Identifier: Apache-2.0
// The resolver that combines several others. It merges their specs, and passes other questions to the first
// one.
#include <vector>

#include "core/cluster/resolvers.hpp"

namespace dist {
namespace {

class UnionResolver final : public ClusterResolver {
 public:
  UnionResolver(Memory& memory, std::span<ClusterResolver* const> members, const ResolverOptions& options)
      : ClusterResolver(memory, options), members_(&memory) {
    members_.reserve(members.size());
    for (ClusterResolver* const member : members) members_.push_back(Ref<ClusterResolver>::share(member));
  }

  Status spec(Ref<ClusterSpec>* out) const override {
    std::pmr::vector<Ref<ClusterSpec>> specs(members_.size(), &memory());
    std::pmr::vector<const ClusterSpec*> pointers(&memory());
    for (std::size_t i = 0; i < members_.size(); ++i) {
      DIST_TRY(members_[i]->spec(&specs[i]));
      pointers.push_back(specs[i].get());
    }
    return ClusterSpec::unite(memory(), pointers, out);
  }

  std::size_t num_members() const noexcept override {
    std::size_t number = 1;
    for (const auto& member : members_) number += member->num_members();
    return number;
  }
  Status gpu_ids(FoundText* out) const override { return first().gpu_ids(out); }
  HeldPort* held_port() const noexcept override { return first().held_port(); }

 protected:
  const char* kind() const noexcept override { return "union"; }
  const char* spec_source() const noexcept override { return "the resolvers of the union"; }
  Status find_task_type(FoundText* out) const override { return first().task_type(out); }
  Status find_task_id(FoundNumber* out) const override { return first().task_id(out); }
  Status find_rpc_layer(FoundText* out) const override { return first().rpc_layer(out); }
  Status find_environment(FoundText* out) const override { return first().environment(out); }
  // The RPC layer of the first resolver applies only to its own addresses. For a task of the union, only the
  // union's RPC layer applies.
  Status find_address(const AskedTask& asked, FoundText* out) const override {
    if (!asked.is_whole()) return first().address({nullptr, DIST_TASK_UNSET, asked.rpc_layer}, out);
    const char* const own = given_rpc_layer() == nullptr ? "" : given_rpc_layer();
    return task_address({asked.type, asked.id, asked.rpc_layer == nullptr ? own : asked.rpc_layer}, out);
  }
  Status find_num_accelerators(const AskedTask& asked, FoundNumber* out) const override {
    return first().num_accelerators(asked, out);
  }

 private:
  const ClusterResolver& first() const noexcept { return *members_.front(); }

  std::pmr::vector<Ref<ClusterResolver>> members_;
};

}  // namespace

Status create_union_resolver(Memory& memory, std::span<ClusterResolver* const> members,
                             const ResolverOptions& options, Ref<ClusterResolver>* out) {
  if (members.empty()) return invalid_argument("a union needs at least one resolver");
  std::size_t number = 1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == nullptr)
      return invalid_argument("resolver %zu of the union, counted from 0, is `NULL`", i);
    number += members[i]->num_members();
    if (number > DIST_MAX_CLUSTER_MEMBERS) {
      return invalid_argument(
          "the union has more than %d resolvers, including itself and the resolvers of unions in it",
          DIST_MAX_CLUSTER_MEMBERS);
    }
  }
  *out = Ref<ClusterResolver>::adopt(make_counted<UnionResolver>(memory, members, options).take());
  return kOk;
}

}  // namespace dist
