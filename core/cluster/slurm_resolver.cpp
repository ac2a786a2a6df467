// SPDX-License-Identifier: Apache-2.0
// The resolver for a Slurm step, which is read on creation.
#include <charconv>

#include "core/base/text.hpp"
#include "core/cluster/resolvers.hpp"

namespace dist {
namespace {

constexpr const char* kSource = "Slurm: rank, hosts and jobs of the step";

class SlurmResolver final : public ClusterResolver {
 public:
  SlurmResolver(Memory& memory, const ResolverOptions& options)
      : ClusterResolver(memory, options), step_(memory) {}
  Status read(const SlurmOptions& slurm) { return step_.read(slurm); }

  Status spec(Ref<ClusterSpec>* out) const override {
    *out = step_.spec();
    return kOk;
  }

  Status gpu_ids(FoundText* out) const override {
    if (step_.gpus_per_task() == 0) return ClusterResolver::gpu_ids(out);
    if (step_.first_gpu() < 0) {
      return invalid_argument(
          "the rank of this process is %d, but the Slurm step has %s, with ranks from 0 on, so this process "
          "has no GPUs",
          step_.rank(), CountText(step_.num_tasks(), "task").text);
    }
    char ids[DIST_MAX_ADDRESS_BYTES];
    char* at = ids;
    char* const end = ids + sizeof ids;
    for (int32_t i = 0; i < step_.gpus_per_task(); ++i) {
      if (i > 0 && at < end) *at++ = ',';
      const auto [stop, error] = std::to_chars(at, end, step_.first_gpu() + i);
      if (error != std::errc{} || stop == end) {
        return invalid_argument("the list of the %d GPUs of this process has more than %d bytes",
                                step_.gpus_per_task(), DIST_MAX_ADDRESS_BYTES - 1);
      }
      at = stop;
    }
    return out->set({ids, static_cast<std::size_t>(at - ids)}, kSource, "the GPUs");
  }

 protected:
  const char* kind() const noexcept override { return "Slurm"; }
  const char* spec_source() const noexcept override { return "hosts and tasks of the Slurm step"; }
  Status find_task_type(FoundText* out) const override {
    return step_.job() == nullptr ? kOk : out->set(step_.job(), kSource, "task_type");
  }
  Status find_task_id(FoundNumber* out) const override {
    if (step_.job() != nullptr) *out = {step_.index(), kSource};
    return kOk;
  }
  Status find_rpc_layer(FoundText* out) const override { return out->set("grpc", "default", "rpc_layer"); }
  Status find_address(const AskedTask& asked, FoundText* out) const override {
    return own_or_asked_address(asked, out);
  }
  Status find_num_accelerators(const AskedTask& asked, FoundNumber* out) const override {
    if (step_.gpus_per_task() == 0) return ClusterResolver::find_num_accelerators(asked, out);
    return *out = {step_.gpus_per_task(), "GPUs of a task of the Slurm step"}, kOk;
  }

 private:
  SlurmStep step_;
};

}  // namespace

Status create_slurm_resolver(Memory& memory, const SlurmOptions& slurm, const ResolverOptions& options,
                             Ref<ClusterResolver>* out) {
  Ref<SlurmResolver> made = make_counted<SlurmResolver>(memory, options);
  DIST_TRY(made->read(slurm));
  *out = Ref<ClusterResolver>::adopt(made.take());
  return kOk;
}

}  // namespace dist
