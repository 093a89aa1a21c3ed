/**
 * @file team.h
 * @brief The threads that share a row: fa/reduce.h makes a team, fa/row.h tells its members what they hold.
 */
#ifndef FA_KERNEL_TEAM_H
#define FA_KERNEL_TEAM_H

#include <fa/fa.h>

/** The threads that share a row: 1, 2, 4, ... 32 neighbouring lanes of a warp, all of a block, or all of a cluster of
 *  blocks. On the CPU it is one thread. */
typedef struct fa_team {
    int thread, threads; /**< the caller's number in the team, and how many they are */
    int block, blocks;   /**< the caller's block in its cluster, and how many these are: 0 of 1 without one */
    int round;           /**< reductions so far: they use the two halves of the shared memory in turn, so that a team is made once and passed
                              by address; before the first of a cluster also what is left to do for it */
    int whole;           /**< 1: every row that it opens starts at a multiple of 16 bytes and fills what the team holds, so that
                              there are no ends to handle (GPU); 0: any row */
    int phase;           /**< bytes from a multiple of 16 to the first of a block's rows where these lie in shared memory without gaps; else 0 */
} fa_team;

#endif
