// SPDX-License-Identifier: Apache-2.0
// libdist-grpc.so exports one function. It returns the table through which libdist uses the library.
#include "core/net/grpc_module.hpp"

#include <grpc/support/log.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/calls.hpp"
#include "core/net/grpc/endpoint.hpp"
#include "core/net/grpc/grpc_config.hpp"

namespace dist::grpc_link {
namespace {

void say_nothing(gpr_log_func_args*) {}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// gRPC's threads inherit the signal mask of the thread that creates the first of them. That mask must not be
// the host's.
template <class Started>
struct Starting {
  static void* main(void* given) {
    block_async_signals();
    auto& self = *static_cast<Starting*>(given);
    try {
      self.why = self.started.start();
    } catch (const std::exception& error) {
      self.why = error.what();
    }
    return nullptr;
  }
  Started& started;
  std::string why;
};

// Returns DIST_OK, or fails with the reason.
template <class Started>
dist_status start_aside(Started& started, char* why, std::size_t size) {
  Starting<Started> starting{started, ""};
  Thread starter;
  if (!starter.start(Starting<Started>::main, &starting).ok()) {
    copy_text(why, size, "the system cannot create another thread");
    return DIST_RESOURCE_EXHAUSTED;
  }
  starter.join();
  if (starting.why.empty()) return DIST_OK;
  copy_text(why, size, starting.why.c_str());
  return DIST_UNAVAILABLE;
}

dist_status check_credentials(const Config& config, char* why, std::size_t size) {
  if (!config.tls()) return DIST_OK;
  const std::string text = why_unusable(config.credentials());
  copy_text(why, size, text.c_str());
  return text.empty() ? DIST_OK : DIST_INVALID_ARGUMENT;
}

// Calls `make` and converts exceptions to a status.
template <class Make>
dist_status started(char* why, std::size_t size, Make&& make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    copy_text(why, size, "out of memory");
    return DIST_RESOURCE_EXHAUSTED;
  } catch (const std::exception& error) {
    copy_text(why, size, error.what());
    return DIST_INTERNAL;
  }
}

// Fills in the settings that configurations of workers and of calls share.
template <class Given>
Config config_of(const Given& given) {
  Config own;
  own.bind_address = text_of(given.bind_address);
  const LinkSecurity& security = given.security;
  own.secret = text_of(security.secret);
  own.ca = text_of(security.ca);
  own.certificate = text_of(security.certificate);
  own.key = text_of(security.key);
  own.ca_file = text_of(security.files.ca);
  own.certificate_file = text_of(security.files.certificate);
  own.key_file = text_of(security.files.key);
  own.lease_ns = security.lease_ns;
  own.version = DIST_GRPC_VERSION;
  return own;
}

void silence() noexcept { gpr_set_log_function(say_nothing); }

dist_status start(const GrpcModuleConfig& config, Transport** out, void** handle, char* why,
                  std::size_t size) noexcept {
  return started(why, size, [&] {
    Config own = config_of(config);
    for (const char* const each : config.addresses) own.addresses.emplace_back(each);
    own.me = config.me;
    for (const Descriptor& each : config.sockets) own.sockets.push_back(each.number());
    own.digest = text_of(config.digest);
    own.forms = config.forms;
    own.came_from = config.came_from;
    own.replicas.assign(config.replicas.begin(), config.replicas.end());
    own.credit = config.credit;
    if (const dist_status code = check_credentials(own, why, size); code != DIST_OK) return code;
    std::unique_ptr<Carriers> carriers;
    if (config.links != nullptr) {
      own.transport = config.links->name;
      carriers = std::make_unique<Carriers>(*config.memory, *config.links);
    }
    auto endpoint = std::make_unique<Endpoint>(*config.memory, std::move(own), std::move(carriers));
    const dist_status code = start_aside(*endpoint, why, size);
    if (code != DIST_OK) return code;
    *out = endpoint.get();
    *handle = endpoint.release();
    return code;
  });
}

dist_status form_endpoint(void* handle, const Forming& wanted, Formed* out, char* why,
                          std::size_t size) noexcept {
  try {
    std::string text;
    const dist_status code = static_cast<Endpoint*>(handle)->form(wanted, out, &text);
    if (code != DIST_OK) copy_text(why, size, text.c_str());
    return code;
  } catch (const std::bad_alloc&) {
    copy_text(why, size, "out of memory");
    return DIST_RESOURCE_EXHAUSTED;
  }
}

bool endpoint_has_newcomers(void* handle) noexcept { return static_cast<Endpoint*>(handle)->has_newcomers(); }

Parting part_endpoint(void* handle) noexcept {
  Parting known;
  static_cast<Endpoint*>(handle)->stop(&known);
  return known;
}

dist_status start_calls(const CallModuleConfig& config, CallNetwork** out, char* why,
                        std::size_t size) noexcept {
  return started(why, size, [&] {
    Config own = config_of(config);
    own.me = -1;
    if (const dist_status code = check_credentials(own, why, size); code != DIST_OK) return code;
    auto calls = std::make_unique<Calls>(*config.memory, std::move(own), config.limits, config.handler);
    const dist_status code = start_aside(*calls, why, size);
    if (code == DIST_OK) *out = calls.release();
    return code;
  });
}

void stop_calls(CallNetwork* network) noexcept {
  auto* const calls = static_cast<Calls*>(network);
  calls->stop();
  delete calls;
}

void stop_endpoint(void* handle) noexcept {
  auto* const endpoint = static_cast<Endpoint*>(handle);
  endpoint->stop();
  delete endpoint;
}

constexpr GrpcModule kModule = {"libdist " DIST_GRPC_VERSION ", protocol " DIST_GRPC_PROTOCOL,
                                silence,
                                start,
                                form_endpoint,
                                endpoint_has_newcomers,
                                part_endpoint,
                                stop_endpoint,
                                start_calls,
                                stop_calls};

}  // namespace
}  // namespace dist::grpc_link

extern "C" [[gnu::visibility("default")]] const dist::GrpcModule* dist_grpc_module();
extern "C" const dist::GrpcModule* dist_grpc_module() { return &dist::grpc_link::kModule; }
