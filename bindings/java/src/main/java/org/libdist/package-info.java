// SPDX-License-Identifier: Apache-2.0

/**
 * Runs one function on several replicas at the same time and lets them meet in collectives: tf.distribute's
 * model for host CPUs, by libdist. Begin with {@link org.libdist.Strategy}.
 */
package org.libdist;
