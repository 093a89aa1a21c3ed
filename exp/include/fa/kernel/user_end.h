/* user_end.h: ends what kernel/user.h began. */
#undef FA__HAS_USER
#undef FA__USER
#undef FA__USER_TYPE
#undef FA__USER_BYTES
