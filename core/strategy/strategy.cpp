// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/strategy.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "core/base/os/barrier.hpp"
#include "core/base/os/cgroup.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/cluster/job_settings.hpp"
#include "core/cluster/resolvers.hpp"
#include "core/collective/call.hpp"
#include "core/net/link_modules.hpp"
#include "core/serve/instances.hpp"
#include "core/strategy/scope.hpp"
#include "core/strategy/worker_network.hpp"

namespace dist {

// The options, resolved on this machine.
struct Strategy::Plan {
  int num_replicas;
  int usable_cpus;
  int64_t timeout_ns;
  WaitPolicy policy;
  StrategyOrigin origin;
};

namespace {

// All replicas run at the same time, on threads of the library or of the host.
Status check_threads(int num_replicas) noexcept {
  const int64_t most = most_threads();
  if (num_replicas <= most) return kOk;
  return fail(DIST_RESOURCE_EXHAUSTED,
              "`num_replicas` is %d, but this system runs at most %lld threads at a time "
              "(/proc/sys/kernel/threads-max and pid_max)",
              num_replicas, static_cast<long long>(most));
}

// If devices are given, their number must equal the number of replicas.
Status check_num_devices(const StrategyOptions& options) noexcept {
  const std::size_t n = options.devices.size();
  if (n == 0) return kOk;
  if (has_one_replica(options.kind) && n > 1) {
    return invalid_argument("`num_devices` is %zu, but the one-device strategy has one device", n);
  }
  if (options.num_replicas != 0 && static_cast<std::size_t>(options.num_replicas) != n) {
    return invalid_argument(
        "`num_replicas` is %d, but `num_devices` is %zu. Set one of them, or both to the same number.",
        options.num_replicas, n);
  }
  return kOk;
}

// Additional stack for collectives of many replicas, as run.h states it.
int64_t more_stack_bytes(int num_replicas) noexcept {
  if (num_replicas <= 0) return 0;
  const auto contributions = static_cast<int64_t>(most_contributions(num_replicas));
  return 64 * std::max<int64_t>(num_replicas - 256, 0) + 16 * (contributions - 1024);
}

Status check_stack(const StrategyOptions& options) noexcept {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t least = static_cast<int64_t>(least_stack_bytes()) + more_stack_bytes(options.num_replicas);
  if (options.stack_bytes == 0) return kOk;
  if (options.threads == DIST_THREADS_HOST) {
    return invalid_argument(
        "`stack_size_bytes` is %lld, but with `DIST_THREADS_HOST` there are no library threads. Leave it "
        "unset, and set the stack size of the host threads.",
        static_cast<long long>(options.stack_bytes));
  }
  if (options.stack_bytes >= least && options.stack_bytes <= kMost) return kOk;
  return invalid_argument(
      "`stack_size_bytes` is %lld, but must be %lld to 2^40 for this number of replicas, or 0 for the "
      "system's "
      "default",
      static_cast<long long>(options.stack_bytes), static_cast<long long>(least));
}

Status no_devices_over_workers() noexcept {
  return fail(DIST_UNIMPLEMENTED,
              "replicas of several workers cannot have logical devices. Set options of either "
              "`DIST_STRATEGY_MESH` or `DIST_STRATEGY_MULTI_WORKER_MIRRORED`.");
}

Status check_workers(const StrategyOptions& options) noexcept {
  if (options.kind != DIST_STRATEGY_MULTI_WORKER_MIRRORED) {
    if (options.network == nullptr && options.transport == DIST_TRANSPORT_AUTO &&
        options.replicas_of_workers.empty() && options.staging_bytes == 0 &&
        options.reform == DIST_REFORM_EXPLICIT)
      return kOk;
    if (options.kind == DIST_STRATEGY_MESH &&
        (options.network != nullptr || !options.replicas_of_workers.empty()))
      return no_devices_over_workers();
    return invalid_argument(
        "`network`, `transport`, `replicas_of_workers`, `staging_bytes` and `reform` are options of "
        "`DIST_STRATEGY_MULTI_WORKER_MIRRORED`, but `kind` is `%d`",
        options.kind);
  }
  if ((options.transport < DIST_TRANSPORT_AUTO || options.transport > DIST_TRANSPORT_GLOO) &&
      registered_link_module(options.transport) == nullptr) {
    return invalid_argument(
        "`transport` is `%d`: use `DIST_TRANSPORT_AUTO`, `DIST_TRANSPORT_NONE`, `DIST_TRANSPORT_GRPC` or "
        "`DIST_TRANSPORT_GLOO`, or that of a registered link module",
        options.transport);
  }
  if (options.reform < DIST_REFORM_EXPLICIT || options.reform > DIST_REFORM_AT_NEXT_RUN) {
    return invalid_argument("`reform` is `%d`: use `DIST_REFORM_EXPLICIT` or `DIST_REFORM_AT_NEXT_RUN`",
                            options.reform);
  }
  if (options.reform == DIST_REFORM_AT_NEXT_RUN && options.network != nullptr) {
    return fail(
        DIST_UNIMPLEMENTED,
        "`reform` is `DIST_REFORM_AT_NEXT_RUN`, but workers that share a process (`network`) cannot re-form");
  }
  if (options.staging_bytes < 0) {
    return invalid_argument(
        "`staging_bytes` is %lld; use the number of bytes that tensors in transit may take, or 0",
        static_cast<long long>(options.staging_bytes));
  }
  if (options.functions.given || (options.cross_device != nullptr && options.cross_device->calls_host())) {
    return fail(DIST_UNIMPLEMENTED,
                "host functions (functions, `cross_device`) see only the values of one process. Use another "
                "kind than `DIST_STRATEGY_MULTI_WORKER_MIRRORED`.");
  }
  return kOk;
}

Status check(const StrategyOptions& options) noexcept {
  if (options.kind < DIST_STRATEGY_MIRRORED || options.kind > DIST_STRATEGY_PARAMETER_SERVER) {
    return invalid_argument("`kind` is `%d`: use `DIST_STRATEGY_MIRRORED` or another `DIST_STRATEGY_...`",
                            options.kind);
  }
  if (options.num_replicas < 0) {
    return invalid_argument(
        "`num_replicas` is %d, but must be at least 1, or 0 for the number of usable CPUs",
        options.num_replicas);
  }
  if (has_one_replica(options.kind) && options.num_replicas > 1) {
    return invalid_argument(
        "`num_replicas` is %d, but one-device, default and parameter-server strategies have one replica: use "
        "`DIST_STRATEGY_MIRRORED` or `DIST_STRATEGY_CENTRAL_STORAGE`",
        options.num_replicas);
  }
  DIST_TRY(check_num_devices(options));
  if (options.threads < DIST_THREADS_CALLER || options.threads > DIST_THREADS_HOST) {
    return invalid_argument(
        "`threads` is `%d`: use `DIST_THREADS_CALLER`, `DIST_THREADS_LIBRARY` or `DIST_THREADS_HOST`",
        options.threads);
  }
  DIST_TRY(check_numerics(options.numerics));
  if (options.placement < DIST_PLACEMENT_FREE || options.placement > DIST_PLACEMENT_CORES) {
    return invalid_argument("`placement` is `%d`: use `DIST_PLACEMENT_FREE` or `DIST_PLACEMENT_CORES`",
                            options.placement);
  }
  if (options.move_host_threads && options.threads == DIST_THREADS_LIBRARY) {
    return invalid_argument(
        "`move_host_threads` is set, but with `DIST_THREADS_LIBRARY` no replica runs on a host thread. Leave "
        "it unset.");
  }
  if (options.recorded_events < 0 || options.recorded_events > Recorder::kMostEvents) {
    return invalid_argument(
        "`recorded_events` is %d: use 1 to %d, which is rounded up to a power of two, or 0 for %d",
        options.recorded_events, Recorder::kMostEvents, Recorder::kDefaultEvents);
  }
  DIST_TRY(check_workers(options));
  DIST_TRY(check_stack(options));
  if (options.budget != nullptr && options.budget->memory().forked())
    return failed_precondition(
        "budget: this is a forked child of the process that created it. Create another one in the child.");
  DIST_TRY(check_allocator(options.allocator, "allocator"));
  if (options.async_bytes < 0) {
    return invalid_argument(
        "`async_bytes` is %lld; use the number of bytes that queued collectives may take, or 0",
        static_cast<long long>(options.async_bytes));
  }
  return kOk;
}

// The CPUs that the strategy may use. They must be available to the process.
Status choose_cpus(const StrategyOptions& options, StrategyOrigin* out) noexcept {
  out->chose_cpus = !options.cpus.empty();
  if (!out->chose_cpus) {
    out->cpus = cpus_of_this_thread();
    out->allowed_cpus = allowed_cpus();
    return kOk;
  }
  const CpuSet mine = cpus_of_process();
  for (const int32_t cpu : options.cpus) {
    if (!mine.has(cpu)) {
      char all[256];
      list_cpus(mine, all);
      return invalid_argument(
          "`cpus` contains CPU %d, which this process may not use. Its affinity mask is %s.", cpu, all);
    }
    if (out->cpus.has(cpu)) return invalid_argument("`cpus` contains CPU %d twice", cpu);
    out->cpus.add(cpu);
  }
  out->allowed_cpus = out->cpus.count();
  return kOk;
}

// An assignment must not name any other CPUs.
Status check_named(std::span<const int> named, const StrategyOrigin& origin) noexcept {
  for (const int cpu : named) {
    if (origin.chose_cpus && cpu >= 0 && !origin.cpus.has(cpu))
      return invalid_argument(
          "`device_assignment` places a logical device on CPU %d, which `cpus` does not contain", cpu);
  }
  return kOk;
}

int32_t recorded_events_of(const StrategyOptions& options) noexcept {
  if (options.recorded_events == 0) return Recorder::kDefaultEvents;
  return static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(options.recorded_events)));
}

std::size_t async_bytes_of(const StrategyOptions& options, int num_replicas) noexcept {
  return options.async_bytes != 0 ? static_cast<std::size_t>(options.async_bytes)
                                  : AsyncMemory::default_bytes(num_replicas);
}

// The mesh strategy has the number of replicas of its assignment.
Status check_mesh_of(const StrategyOptions& options, StrategyOptions* out) {
  const DeviceAssignment* const assignment = options.mesh.assignment;
  if (options.kind != DIST_STRATEGY_MESH) {
    if (!options.mesh.given()) return kOk;
    if (options.kind == DIST_STRATEGY_MULTI_WORKER_MIRRORED) return no_devices_over_workers();
    return invalid_argument(
        "`device_assignment`, `axes` and `use_spmd_partitioning` are options of `DIST_STRATEGY_MESH`, but "
        "`kind` is %d",
        options.kind);
  }
  DIST_TRY(check_mesh(options.mesh));
  if (assignment == nullptr) return kOk;
  if (options.num_replicas != 0 && options.num_replicas != assignment->num_replicas()) {
    return invalid_argument("`num_replicas` is %d, but `device_assignment` has %s. Set only one of them.",
                            options.num_replicas, CountText(assignment->num_replicas(), "replica").text);
  }
  if (options.threads == DIST_THREADS_HOST && assignment->num_logical_devices() > 1) {
    return invalid_argument(
        "threads is `DIST_THREADS_HOST`, but a replica with several logical devices needs library threads: "
        "use `DIST_THREADS_CALLER` or `DIST_THREADS_LIBRARY`");
  }
  out->num_replicas = assignment->num_replicas();
  return kOk;
}

// Whether oneTBB threads may be used. oneTBB starts them on first use.
bool may_help(const StrategyOptions& options) noexcept {
  return options.threads != DIST_THREADS_HOST || options.helper_threads;
}

int num_replicas_of(const StrategyOptions& options, int usable_cpus) noexcept {
  if (has_one_replica(options.kind)) return 1;
  if (!options.devices.empty()) return static_cast<int>(options.devices.size());
  return options.num_replicas != 0 ? options.num_replicas : usable_cpus;
}

// The longest wait for a peer: from the communication options if set.
int64_t timeout_of(const StrategyOptions& options) noexcept {
  const int64_t timeout_ns = options.communication.timeout_ns;
  if (timeout_ns != 0) return timeout_ns;
  return options.timeout_ns == 0 ? kDefaultTimeoutNs : options.timeout_ns;
}

// The cluster and the place of this process in it, from TF_CONFIG if no resolver was given.
Status place_worker(Memory& memory, StrategyOptions* options, Ref<ClusterResolver>* kept,
                    JobSettings* settings, WorkerPlace* out) {
  if (options->kind == DIST_STRATEGY_PARAMETER_SERVER && options->cluster_resolver == nullptr) {
    DIST_TRY(create_tf_config_resolver(memory, {}, kept));
    options->cluster_resolver = kept->get();
  }
  if (options->kind != DIST_STRATEGY_MULTI_WORKER_MIRRORED) return kOk;
  DIST_TRY(read_job_settings(settings));
  if (options->cluster_resolver == nullptr) {
    DIST_TRY(create_tf_config_resolver(memory, {}, kept));
    options->cluster_resolver = kept->get();
  }
  DIST_TRY(find_place(*options->cluster_resolver, out));
  const std::span<const int32_t> given = options->replicas_of_workers;
  const auto me = static_cast<std::size_t>(out->me);
  if (options->num_replicas == 0 && options->devices.empty() && me < given.size()) {
    options->num_replicas = std::max<int32_t>(given[me], 0);
  }
  if (options->num_replicas == 0 && options->devices.empty()) options->num_replicas = settings->num_replicas;
  return kOk;
}

WorkerPlace copy_of(Memory& memory, const WorkerPlace& place) {
  WorkerPlace copy(memory);
  copy = place;
  return copy;
}

ConnectionOptions connection_options_of(const StrategyOptions& options) noexcept {
  return {options.allocator, options.network, options.transport, options.cluster_resolver};
}

bool pins(const StrategyOptions& options) noexcept {
  return options.placement == DIST_PLACEMENT_CORES && options.threads != DIST_THREADS_HOST;
}

// The CPU of each device of each replica; empty if no assignment specifies them.
std::pmr::vector<int> named_by(const StrategyOptions& options, Memory& memory) {
  if (!pins(options) || options.mesh.assignment == nullptr) return std::pmr::vector<int>(&memory);
  return named_cpus(*options.mesh.assignment, memory);
}

Placement make_placement(Memory& memory, const StrategyOptions& options, const StrategyOrigin& origin,
                         int num_replicas, int num_devices) {
  const std::pmr::vector<int> named = named_by(options, memory);
  const Placement::Options wanted{num_replicas,      num_devices, options.threads,
                                  options.placement, named,       origin.chose_cpus ? &origin.cpus : nullptr};
  return {memory, wanted, look_around(memory, origin.cpus, pins(options) && named.empty())};
}

}  // namespace

Status Strategy::create(const StrategyOptions& given, Strategy** out) {
  StrategyOptions options = given;
  DIST_TRY(check_mesh_of(given, &options));
  DIST_TRY(check(options));
  Plan plan;
  auto memory = Ref<Memory>::adopt(Memory::create(options.allocator));
  if (!memory) return out_of_memory();
  Memory& place = *memory;
  Ref<ClusterResolver> from_environment;
  WorkerPlace worker(place);
  JobSettings settings(place);
  DIST_TRY(place_worker(place, &options, &from_environment, &settings, &worker));
  plan.origin = {.num_replicas = options.num_replicas,
                 .kind = options.kind,
                 .threads = options.threads,
                 .placement = options.placement,
                 .chose_cpus = false,
                 .cpus = {},
                 .allowed_cpus = 0,
                 .cpu_quota = cgroup_cpu_quota(""),
                 .stack_bytes = options.stack_bytes,
                 .move_host_threads = options.move_host_threads};
  DIST_TRY(choose_cpus(options, &plan.origin));
  DIST_TRY(check_named(named_by(options, place), plan.origin));
  plan.usable_cpus = usable_cpus(plan.origin.allowed_cpus, plan.origin.cpu_quota);
  plan.num_replicas = num_replicas_of(options, plan.usable_cpus);
  if (plan.num_replicas > kMostBySlots) DIST_TRY(check_threads(plan.num_replicas));
  if (!options.devices.empty()) plan.origin.num_replicas = plan.num_replicas;
  plan.timeout_ns = timeout_of(options);
  plan.policy.oversubscribed = plan.num_replicas > plan.usable_cpus;
  plan.policy.stripes = std::min(plan.num_replicas, plan.usable_cpus);
  plan.policy.asymmetric = enable_asymmetric_barriers();
  // Members that share a CPU take turns. A member that slept before each of the others had its turn would have to be
  // woken in every round, and a wake-up costs more than a turn.
  constexpr int64_t kTurnNs = 4000;
  plan.policy.spin_ns = std::max(plan.policy.spin_ns, kTurnNs * plan.num_replicas / plan.policy.stripes);

  HostLayout layout(place);
  if (options.functions.given) DIST_TRY(layout.ask(given.functions, plan.num_replicas, &options));
  plan.origin.kind = options.kind;
  DIST_TRY(set_replicas(options.replicas_of_workers, plan.num_replicas, &worker));
  Devices devices(place);
  DIST_TRY(devices.set(options.kind, options.devices, plan.num_replicas, options.parameter_device));
  if (worker.job.is_set) devices.belong_to(worker.job.text, worker.task);
  std::optional<WorkerLink::Connection> connection;
  if (worker.num_workers() > 1) {
    DIST_TRY(find_connection(place, connection_options_of(options), worker, settings, &connection));
    // The threads that move messages need the CPUs on which replicas would spin.
    if (connection->network() != nullptr && connection->network()->has_threads())
      plan.policy.oversubscribed = true;
  } else {
    connection.emplace();
  }
  auto strategy = make_counted<Strategy>(place, options, plan, std::move(devices), std::move(worker),
                                         std::move(*connection));
  DIST_TRY(strategy->pool().start());
  *out = strategy.take();
  return kOk;
}

Strategy::Strategy(Memory& memory, const StrategyOptions& options, const Plan& plan, Devices devices,
                   WorkerPlace worker, WorkerLink::Connection connection)
    : Counted(memory),
      origin_(plan.origin),
      timeout_ns_(plan.timeout_ns),
      devices_(std::move(devices)),
      communication_(options.communication),
      cross_device_(Ref<CrossDevice>::share(options.cross_device)),
      assignment_(Ref<DeviceAssignment>::share(options.mesh.assignment)),
      cluster_resolver_(Ref<ClusterResolver>::share(options.cluster_resolver)),
      budget_(options.budget == nullptr ? Ref<BudgetParty>()
                                        : make_counted<BudgetParty>(memory, *options.budget)),
      mesh_(make_mesh(options.mesh, memory)),
      spmd_(options.mesh.spmd),
      reform_(options.reform),
      connection_options_(connection_options_of(options)),
      cluster_place_(copy_of(memory, worker)),
      placement_(make_placement(memory, options, origin_, plan.num_replicas, mesh_.num_devices)),
      arena_(memory, may_help(options) ? plan.usable_cpus : 1, placement_.within(), placement_.bounds(),
             options.executor),
      async_memory_(async_bytes_of(options, plan.num_replicas)),
      variables_(memory),
      handles_(make_counted<LiveHandles>(memory)),
      late_destroys_(options.late_destroys),
      numbers_(make_counted<ReplicaNumbers>(memory, worker.count())),
      plan_(membership_plan(options, plan)),
      now_(make_counted<Membership>(memory, *this, plan_, std::move(worker), std::move(connection),
                                    Membership::Change{})),
      membership_(now_.get()) {}

Strategy::~Strategy() {
  if (!instances_) return;
  // First the threads, which are instances between runs; then what the instances use of the pool.
  pool().end_threads();
  instances_->detach();
}

Instances& Strategy::make_instances() {
  const std::lock_guard lock(beginning_to_serve_);
  if (!instances_) {
    instances_ = make_counted<Instances>(memory(), pool());
    serving_.store(instances_.get());
    // Either shut_down() sees the instances, or this sees that it has begun.
    if (ended_) instances_->refuse_all();
  }
  return *instances_;
}

Membership::Plan Strategy::membership_plan(const StrategyOptions& options, const Plan& plan) noexcept {
  PoolSettings wanted{};
  wanted.num_replicas = plan.num_replicas;
  wanted.threads.kind = options.threads;
  wanted.threads.placement = &placement_;
  wanted.threads.usable_cpus = plan.usable_cpus;
  wanted.timeout_ns = plan.timeout_ns;
  wanted.collectives.channels = {nullptr, &async_memory_, last_level_cache_bytes(), nullptr};
  wanted.collectives.numerics = options.numerics;
  wanted.collectives.bytes_per_pack = options.communication.bytes_per_pack;
  wanted.keeper = this;
  wanted.threads.no_helpers = !may_help(options);
  wanted.threads.executor = options.executor;
  wanted.party = budget_.get();
  wanted.collectives.alone = has_one_replica(options.kind);
  wanted.nesting.devices = options.kind == DIST_STRATEGY_MESH ? &mesh_ : nullptr;
  wanted.threads.stack_bytes = static_cast<std::size_t>(options.stack_bytes);
  wanted.threads.move_host_threads = options.move_host_threads;
  return {options.host,
          plan.policy,
          plan.num_replicas,
          plan.timeout_ns,
          static_cast<std::size_t>(options.staging_bytes),
          recorded_events_of(options),
          wanted};
}

Status Strategy::enter(WorkerPlace worker, WorkerLink::Connection connection,
                       const Membership::Change& change) {
  const ReplicaCount count = worker.count();
  auto next =
      make_counted<Membership>(memory(), *this, plan_, std::move(worker), std::move(connection), change);
  DIST_TRY(next->pool().start());
  numbers_->change(count);
  before_ = std::move(now_);
  now_ = std::move(next);
  // release: a thread that reads the pointer sees the whole membership.
  membership_.store(now_.get(), std::memory_order_release);
  return kOk;
}

namespace {

class EndOfWait final : public Cancel::Link {
 public:
  explicit EndOfWait(std::atomic<bool>& cancelled) noexcept : cancelled_(cancelled) {}
  void cancelled(const char*) noexcept override { cancelled_ = true; }

 private:
  std::atomic<bool>& cancelled_;
};

}  // namespace

Status Strategy::hear_leader(const char* call, Cancel* cancel, uint32_t* out_announced) noexcept {
  // The strategy may be shut down and destroyed meanwhile.
  const auto kept = Ref<Strategy>::share(this);
  const std::unique_lock lock(reforming_, std::try_to_lock);
  if (!lock)
    return failed_precondition("`%s()`: another thread is re-forming or destroying the strategy", call);
  std::atomic<bool>& cancelled = begin_wait();
  EndOfWait end(cancelled);
  const CancelScope scope(cancel, end);
  if (scope.late()) cancelled = true;
  return workers()->hear_leader(cancelled, out_announced);
}

Status Strategy::device_of(GlobalReplica replica, const char** out_name) const noexcept {
  const ReplicaCount replicas = this->replicas();
  const LocalReplica local = replicas.local_of(replica);
  if (local == kNoLocalReplica && !devices_.workers().empty()) {
    return invalid_argument("`replica_id` is %d, but the strategy has replicas %d to %d", number(replica),
                            number(replicas.first()), number(replicas.last()));
  }
  return Devices::name(devices_.workers(), static_cast<int32_t>(local), "replica_id", out_name);
}

Status Strategy::check_cross_replica(const char* call) const noexcept {
  DIST_TRY(check_process());
  return check_cross_replica_context(*this, call);
}

}  // namespace dist
