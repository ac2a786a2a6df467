// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** Which collective an exception, or a row of {@link Strategy#stragglers}, speaks of. */
public enum Collective {
    /** None. */
    NONE(0),
    /** {@link Replica#allReduce}. */
    ALL_REDUCE(1),
    /** {@link Replica#broadcast}. */
    BROADCAST(2),
    /** {@link Replica#barrier}. */
    BARRIER(3),
    /** {@link Replica#mergeCall}, and what meets as it does. */
    MERGE_CALL(4),
    /** The end of the replica function, where all replicas also wait for each other. */
    RETURN(5),
    /** {@link Replica#reduceToRoot}. */
    REDUCE(6),
    /** {@link Replica#reduceScatter}. */
    REDUCE_SCATTER(7),
    /** {@link Replica#allGather}. */
    ALL_GATHER(8),
    /** {@link Replica#gatherToRoot}. */
    GATHER(9),
    /** {@link Replica#scatterFromRoot}. */
    SCATTER(10),
    /** {@link Replica#allToAll}. */
    ALL_TO_ALL(11),
    /** {@link Replica#scan}. */
    SCAN(12),
    /** {@link Replica#permute}. */
    PERMUTE(13),
    /** {@link Replica#reduceApply}. */
    REDUCE_APPLY(14),
    /** {@link Replica#haloExchange}. */
    HALO_EXCHANGE(15),
    /** {@link Replica#reshard}. */
    RESHARD(16),
    /** One that a later version has. */
    OTHER(-1);

    final int code;

    Collective(int code) {
        this.code = code;
    }

    /** A number of a later version counts as OTHER. */
    static Collective of(int code) {
        return switch (code) {
            case 0 -> NONE;
            case 1 -> ALL_REDUCE;
            case 2 -> BROADCAST;
            case 3 -> BARRIER;
            case 4 -> MERGE_CALL;
            case 5 -> RETURN;
            case 6 -> REDUCE;
            case 7 -> REDUCE_SCATTER;
            case 8 -> ALL_GATHER;
            case 9 -> GATHER;
            case 10 -> SCATTER;
            case 11 -> ALL_TO_ALL;
            case 12 -> SCAN;
            case 13 -> PERMUTE;
            case 14 -> REDUCE_APPLY;
            case 15 -> HALO_EXCHANGE;
            case 16 -> RESHARD;
            default -> OTHER;
        };
    }
}
