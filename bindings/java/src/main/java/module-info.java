// SPDX-License-Identifier: Apache-2.0

/** libdist for Java: tf.distribute's model for host CPUs. */
module org.libdist {
    exports org.libdist;
}
