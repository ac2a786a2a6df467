// SPDX-License-Identifier: Apache-2.0
//
// dist/experimental/rendezvous.hpp: rendezvous.h for C++: workers that find each other at one address.
//
//     dist_rendezvous_options workers = DIST_RENDEZVOUS_OPTIONS_INIT;        // rank and size come from the launcher
//     workers.address = "10.0.0.7:29500";
//     const dist::cluster_resolver resolver = dist::rendezvous(&workers);
#ifndef DIST_EXPERIMENTAL_RENDEZVOUS_HPP
#define DIST_EXPERIMENTAL_RENDEZVOUS_HPP

#include "../hpp/cluster.hpp"
#include "rendezvous.h"

namespace dist {

// Waits until all workers have met at one address. Without options, the environment provides everything.
inline cluster_resolver rendezvous(const dist_rendezvous_options *workers = nullptr,
                                   const dist_cluster_resolver_options *options = nullptr) {
  dist_cluster_resolver *made = nullptr;
  check(dist_cluster_resolver_create_rendezvous(workers, options, &made));
  return cluster_resolver::adopt(made);
}

}  // namespace dist

#endif  // DIST_EXPERIMENTAL_RENDEZVOUS_HPP
