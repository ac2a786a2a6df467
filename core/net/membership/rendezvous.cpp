// SPDX-License-Identifier: Apache-2.0
#include "core/net/membership/rendezvous.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/base/os/addresses.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/tcp.hpp"
#include "core/base/text.hpp"
#include "core/cluster/job_settings.hpp"
#include "core/net/membership/gathering.hpp"
#include "core/net/membership/joining.hpp"
#include "core/net/membership/module_meeting.hpp"
#include "core/net/rpc/job_calls.hpp"

namespace dist {
namespace {

constexpr char kAddress[] = "the rendezvous address";
constexpr char kNoHost[] = "::";  // all interfaces

// Where this worker listens, and the host at which others reach it.
struct Hosts {
  std::string bind;
  std::string port = "0";
  std::string advertised;  // "" stands for the address that worker 0 sees
};

bool is_wildcard(const std::string& host) noexcept { return host == "::" || host == "0.0.0.0"; }

// Finds an IP address of this machine for the host of DIST_BIND_ADDRESS.
Status own_address(const std::string& host, std::string* out) {
  *out = host == "localhost" ? "127.0.0.1" : host;
  if (HostAndPort{*out, 0}.is_number()) return kOk;
  const HostAddresses found = look_up(host);
  for (const std::string& each : found.list) {
    if (why_not_bind(each, 0).empty()) return *out = each, kOk;
  }
  return fail(DIST_UNAVAILABLE, "the host of DIST_BIND_ADDRESS, \"%s\", %s", Shown(host.c_str()).c_str(),
              found.list.empty() ? "does not resolve" : "resolves to no address of this machine");
}

Status find_hosts(const RendezvousPlace& place, const JobSettings& settings, Hosts* out) {
  HostAndPort meeting;
  const bool known = parse_address(place.address.c_str(), 0, &meeting);
  if (!settings.bind_address.empty()) {
    HostAndPort bind;
    if (!parse_address(settings.bind_address.c_str(), 0, &bind)) {
      return invalid_argument(
          "DIST_BIND_ADDRESS is \"%s\", but must be %s, or 0 to let the system choose one",
          Shown(settings.bind_address.c_str()).c_str(), kAddressForm);
    }
    const std::string host(bind.host);
    DIST_TRY(own_address(host, &out->bind));
    out->port = std::to_string(bind.port);
    if (!is_wildcard(host)) out->advertised = host == "localhost" ? out->bind : host;
  } else if (!known || meeting.is_loopback()) {
    // The rendezvous may be at localhost, which stands for two addresses, so use only one of them.
    out->bind = known && meeting.is_number() ? std::string(meeting.host) : "127.0.0.1";
    out->advertised = out->bind;
  } else {
    out->bind = kNoHost;
  }
  // Worker 0 cannot see its own address from outside, so it uses that of the rendezvous.
  if (place.rank == 0 && out->advertised.empty()) out->advertised = std::string(meeting.host);
  return kOk;
}

Status hold_port(Memory& memory, const Hosts& hosts, int64_t lease_ns, Ref<HeldPort>* out) {
  Listening listening = listen_on({hosts.bind}, hosts.port,
                                  static_cast<int>((lease_ns == 0 ? kDefaultLeaseNs : lease_ns) / 1'000'000));
  if (listening.sockets.empty()) {
    return fail(DIST_UNAVAILABLE,
                "this worker cannot listen on port %s of %s: %s. Set DIST_BIND_ADDRESS to another address.",
                hosts.port.c_str(), hosts.bind.c_str(), listening.why.c_str());
  }
  const std::pmr::string address = address_text(memory, hosts.bind, listening.port);
  *out = make_counted<HeldPort>(memory, std::move(listening), address);
  return kOk;
}

// The address on which worker 0 listens for the others.
std::pmr::string meeting_bind_address(Memory& memory, const RendezvousPlace& place,
                                      const JobSettings& settings, const Hosts& hosts) {
  HostAndPort meeting;
  (void)parse_address(place.address.c_str(), 0, &meeting);
  return settings.bind_address.empty() ? default_bind_address(memory, place.address.c_str())
                                       : address_text(memory, hosts.bind, static_cast<int>(meeting.port));
}

struct Wait {
  int64_t until_ns = INT64_MAX;
  std::string text;  // "5 s"
};

Wait wait_of(const MeetingLimits& limits) {
  const int64_t limit = limits.timeout_ns == 0 ? kDefaultMeetingNs : limits.timeout_ns;
  const int64_t now = steady_now_ns();
  return {limit < 0 || limit > INT64_MAX - now ? INT64_MAX : now + limit, DurationText(limit).text};
}

// `module` sends the address to the others. If it is NULL, they know the address.
Status gather(Memory& memory, const RendezvousPlace& place, const std::pmr::string& bind_address,
              const Registration& own, const Wait& wait, Cancel* cancel, ModuleMeeting* module,
              Ref<ClusterSpec>* out) {
  Gathering gathering(memory, place.address.c_str(), own);
  JobCallOptions calls;
  calls.address = bind_address.c_str();
  calls.name = kAddress;
  calls.value = place.address.c_str();
  calls.handler = &gathering;
  calls.limits = {kMostRegistrationBytes, 4 * kMostRegistrationBytes, 4,
                  std::max(std::size_t{4} * static_cast<std::size_t>(own.size), std::size_t{1024})};
  Ref<GrpcCalls> network;
  DIST_TRY(create_job_calls(memory, calls, &network));
  if (module != nullptr) {
    const std::pmr::string address = address_text(memory, own.host, network->port());
    gathering.set_address(address);
    DIST_TRY(module->send(address));
  }
  return gathering.gather(wait.until_ns, cancel, out);
}

Status join(Memory& memory, const RendezvousPlace& place, const Registration& own, const Wait& wait,
            Cancel* cancel, Ref<ClusterSpec>* out) {
  JobCallOptions options;
  options.limits = {most_cluster_bytes(own.size), 4 * most_cluster_bytes(own.size), 4, 1};
  Ref<GrpcCalls> network;
  DIST_TRY(create_job_calls(memory, options, &network));
  Joining joining(memory, *network, own, place.address.c_str());
  DIST_TRY(joining.open());
  return joining.join(wait.until_ns, cancel, out);
}

Status meet(Memory& memory, const RendezvousPlace& place, const Wait& wait, Cancel* cancel,
            ModuleMeeting* module, Met* out) {
  JobSettings settings(memory);
  DIST_TRY(read_job_settings(&settings));
  Hosts hosts;
  DIST_TRY(find_hosts(place, settings, &hosts));
  DIST_TRY(hold_port(memory, hosts, settings.security.lease_ns, &out->port));
  Registration own(memory);
  own.job = place.job;
  own.rank = place.rank;
  own.size = place.size;
  own.host = hosts.advertised;
  own.port = out->port->port();
  if (place.size == 1) {
    const std::pmr::string address = address_text(memory, own.host, own.port);
    SpecBuilder builder(memory);
    DIST_TRY(builder.begin_job("worker"));
    DIST_TRY(builder.add_task(0, address));
    return builder.finish(&out->spec);
  }
  return place.rank == 0 ? gather(memory, place, meeting_bind_address(memory, place, settings, hosts), own,
                                  wait, cancel, module, &out->spec)
                         : join(memory, place, own, wait, cancel, &out->spec);
}

Status find_place_and_meet(Memory& memory, const RendezvousOptions& options, const Wait& wait, Cancel* cancel,
                           RendezvousPlace* place, Met* out) {
  const dist_link_functions* links = nullptr;
  DIST_TRY(find_meeting_module(memory, options, &links));
  std::optional<ModuleMeeting> module;
  if (links == nullptr) {
    DIST_TRY(find_rendezvous_place(memory, options, place));
  } else {
    module.emplace(*links, wait.until_ns, cancel);
    DIST_TRY(module->begin(memory, place));
    DIST_TRY(check_place_of_module(options, links->name, place));
    if (place->rank != 0) DIST_TRY(module->receive(&place->address));
  }
  return meet(memory, *place, wait, cancel, module ? &*module : nullptr, out);
}

}  // namespace

Status meet(Memory& memory, const RendezvousOptions& options, const MeetingLimits& limits,
            RendezvousPlace* place, Met* out) {
  const Wait wait = wait_of(limits);
  const Status met = find_place_and_meet(memory, options, wait, limits.cancel, place, out);
  if (met.code() != DIST_DEADLINE_EXCEEDED) return met;
  const ErrorRecord why = last_error();
  return fail(met.code(), "the workers have not met within %s: %s", wait.text.c_str(), why.message);
}

}  // namespace dist
