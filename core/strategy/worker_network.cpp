// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/worker_network.hpp"

#include <algorithm>
#include <cstdio>
#include <memory_resource>
#include <vector>

#include "core/base/text.hpp"
#include "core/cluster/link_security.hpp"
#include "core/net/grpc_network.hpp"
#include "core/net/link_modules.hpp"
#include "core/net/shm/shm_network.hpp"

namespace dist {
namespace {

// The addresses of all workers in order: the chief, then the others; or the evaluators.
std::pmr::vector<const char*> addresses_of(Memory& memory, const ClusterSpec& spec, std::string_view job) {
  std::pmr::vector<const char*> addresses(&memory);
  for (const char* const each : {"chief", "worker", "evaluator"}) {
    const ClusterSpec::Job* const found = spec.find(each);
    const bool evaluates = std::string_view(each) == "evaluator";
    if (found == nullptr || evaluates != (job == "evaluator")) continue;
    for (std::size_t k = 0; k < found->num_tasks; ++k) addresses.push_back(spec.address(*found, k));
  }
  return addresses;
}

// How the network handles generations.
struct Generations {
  bool forms = false;
  CameFrom came_from;
};

// Options take precedence over the environment.
int32_t transport_of(const ConnectionOptions& options, const JobSettings& settings) noexcept {
  return options.transport != DIST_TRANSPORT_AUTO ? options.transport : settings.transport;
}

Status create_grpc(Memory& memory, const ConnectionOptions& options, const WorkerPlace& place,
                   const JobSettings& settings, const Generations& generations, Ref<Network>* out) {
  Ref<ClusterSpec> spec;
  DIST_TRY(options.cluster_resolver->spec(&spec));
  const std::pmr::vector<const char*> addresses = addresses_of(memory, *spec, place.job.text);
  const auto given = [](const std::pmr::string& text) { return text.empty() ? nullptr : text.c_str(); };
  GrpcOptions grpc{settings.security.view()};
  grpc.addresses = addresses;
  grpc.me = place.me;
  grpc.module_folder = given(settings.module_folder);
  DIST_TRY(find_links(transport_of(options, settings), settings.link_module_for(options.transport),
                      grpc.module_folder, &grpc.links));
  grpc.bind_address = given(settings.bind_address);
  grpc.port = options.cluster_resolver->held_port();
  grpc.forms = generations.forms;
  grpc.came_from = generations.came_from;
  grpc.replicas = place.replicas;
  Ref<GrpcNetwork> made;
  DIST_TRY(GrpcNetwork::create(options.allocator, grpc, &made));
  // Workers that must not share memory still have to say so to those that would.
  ShmTransport::Options shared;
  if (grpc.links != nullptr || transport_of(options, settings) == DIST_TRANSPORT_GRPC) {
    std::snprintf(shared.refuses, sizeof shared.refuses, "its transport is set to %s",
                  grpc.links != nullptr ? grpc.links->name : "grpc");
  }
  Ref<ShmNetwork> network = make_counted<ShmNetwork>(memory, Ref<Network>::adopt(made.take()), shared);
  *out = Ref<Network>::adopt(network.take());
  return kOk;
}

// Whether it is known that the workers are not on loopback. Names are not resolved when a strategy is created.
bool is_off_loopback(Memory& memory, const ConnectionOptions& options, const WorkerPlace& place) {
  Ref<ClusterSpec> spec;
  if (!options.cluster_resolver->spec(&spec).ok()) return false;
  const std::pmr::vector<const char*> addresses = addresses_of(memory, *spec, place.job.text);
  return std::any_of(addresses.begin(), addresses.end(), [](const char* each) {
    HostAndPort address;
    return parse_address(each, 0, &address) && address.is_number() && !address.is_loopback();
  });
}

// The setting that selected no transport.
const char* named_none(const ConnectionOptions& options) noexcept {
  return options.transport == DIST_TRANSPORT_NONE
             ? "`dist_worker_options.transport` is `DIST_TRANSPORT_NONE`"_m
             : "DIST_TRANSPORT is \"none\"";
}

}  // namespace

Status find_connection(Memory& memory, const ConnectionOptions& options, const WorkerPlace& place,
                       const JobSettings& settings, std::optional<WorkerLink::Connection>* out) {
  if (options.network != nullptr) {
    return WorkerLink::Connection::join(*options.network, place.num_workers(), place.me, out);
  }
  if (options.transport == DIST_TRANSPORT_NONE) {
    out->emplace(named_none(options));
    return kOk;
  }
  if (settings.transport == DIST_TRANSPORT_NONE && options.transport == DIST_TRANSPORT_AUTO) {
    return failed_precondition(
        "%s, but the cluster has %d workers, which need a transport. Set it to auto or grpc, or unset it.",
        named_none(options), place.num_workers());
  }
  Ref<Network> network;
  const Status made = create_grpc(memory, options, place, settings, {}, &network);
  if (made.ok()) return WorkerLink::Connection::join(*network, place.num_workers(), place.me, out);
  const ErrorRecord why = last_error();
  const bool wanted =
      transport_of(options, settings) != DIST_TRANSPORT_AUTO || !settings.bind_address.empty();
  const bool hopeless = made.code() != DIST_FAILED_PRECONDITION || is_off_loopback(memory, options, place);
  if (wanted || hopeless) return fail(why);
  // The host names of a cluster may only describe it, for a program that computes with its numbers.
  out->emplace(why.message);
  return kOk;
}

Status find_connection_to_form(Memory& memory, const ConnectionOptions& options, const WorkerPlace& place,
                               const JobSettings& settings, const CameFrom& came_from,
                               std::optional<WorkerLink::Connection>* out) {
  if (transport_of(options, settings) == DIST_TRANSPORT_NONE) {
    return failed_precondition("%s, so this worker cannot reach the other workers", named_none(options));
  }
  Ref<Network> network;
  DIST_TRY(create_grpc(memory, options, place, settings, {true, came_from}, &network));
  return WorkerLink::Connection::join(*network, place.num_workers(), place.me, out);
}

}  // namespace dist
