// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * The version of a series that a replica's run sees; see {@link Versions#get}.
 *
 * @param content the published object, which must not be used after the run
 * @param number its number
 */
public record Version<T>(T content, long number) {}
