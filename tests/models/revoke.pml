/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why freed memory is never accessed: the protocol of Documentation/memory-safety.rst, for one LMR
 * and one mapper. Operations go to the share at the home or, with AT_STORE, to the share at another
 * store; both at once would be too many states.
 *
 * Checked: no operation reaches memory after it was freed, whatever the order of events; and the
 * free ends (everything here is bounded, so a free that does not is an invalid end state).
 *
 * At any time, up to the bounds, one end of a session may take the session for dead (TROUBLES
 * times) while the other end notices later and goes on posting; packets may be late, even those of
 * an operation that failed long ago; REVOKE and UNMAP may overtake other messages; a process may
 * stop for any time (a paused machine); the home may stop waiting for an answer. A new session with
 * the store begins only when the queue pair of the old one is destroyed, so nothing that failed in
 * the old session is in flight any more and the mapper need not report it. A new session with the
 * home may begin earlier, because nothing relies on that order.
 *
 * Not modelled: a store that is a mapper itself; several handles that map at the same time; lives
 * (incarnations) that end; changes, with RECALL, the fence after it (lite_recall_fence()),
 * generations, and the old parts that MOVE and RESIZE free; page faults.
 *
 * Each of the macros below leaves out one step that the argument rests on. The model must then
 * fail; otherwise it shows nothing.
 */
#ifdef NO_WAIT		/* the mapper answers REVOKE with operations in flight */
#define WAIT false
#else
#define WAIT true
#endif
#ifdef NO_FENCE		/* the home does not fence a mapper that does not answer */
#define FENCE false
#else
#define FENCE true
#endif
#ifdef NO_STORE_FENCE	/* the store frees without fencing lost mappers */
#define STORE_FENCE false
#else
#define STORE_FENCE true
#endif
#ifdef NO_CONFIRM	/* the mapper uses the reply to MAP in a newer session, unconfirmed */
#define CONFIRM false
#else
#define CONFIRM true
#endif
#ifdef NO_TRY		/* a REVOKE that overtakes the reply to MAP is lost */
#define TRY false
#else
#define TRY true
#endif
#ifdef NO_SESSION	/* operations are posted in whatever session is current */
#define SESSION false
#else
#define SESSION true
#endif
#ifdef NO_UNCLEAN	/* the mapper hides that a failed operation may be in flight */
#define UNCLEAN false
#else
#define UNCLEAN true
#endif
#ifdef NO_FENCE_FIRST	/* a session with the store begins before the old one is fenced */
#define FENCE_FIRST false
#else
#define FENCE_FIRST true
#endif
#ifdef NO_LEFT		/* the answer to REVOKE does not cover earlier mappings */
#define LEFT false
#else
#define LEFT true
#endif

#ifndef TROUBLES
#define TROUBLES 1
#endif
#define SESSIONS 2	/* of each pair of nodes, one after the other */
#define MAPPINGS 2	/* of the mapper, one after the other */
#define OPS 1

bool mem_home = true;	/* allocated */
bool mem_store = true;

/*
 * A session has two ends. Each end is a variable: the session that its node uses now, 0: none. The
 * queue pair of a dead end accepts packets until the fence destroys it.
 */
byte hm_home = 1, hm_mapper = 1, hm_last = 1;
byte sm_store = 1, sm_mapper = 1, sm_last = 1;
byte troubles = TROUBLES;
bool qp_home[SESSIONS + 1] = { false, true, false };
bool qp_store[SESSIONS + 1] = { false, true, false };

/* Operations in flight, by session; failed ones may still be. */
bool packet_home[SESSIONS + 1], packet_store[SESSIONS + 1];
bool done;		/* the operation that the mapper waits for has completed */

/* Messages. */
mtype = { NONE, ASKED, SERVED, YES, NO, EUCLEAN };
mtype reply;	/* to the mapper's MAP or LMR_EXTENTS; NONE: it never comes */
mtype msg_revoke[SESSIONS + 1] = NONE;

/* At the home. */
bool dying, freed;
byte count[SESSIONS + 1];	/* MAPs of the mapper, by session */
bool unclean_at_home[SESSIONS + 1];
bool lost;

/* At the mapper. */
mtype = { MAKING, ACTIVE, RETIRED, REVOKED };
mtype state[MAPPINGS + 1] = MAKING;
byte in_hm[MAPPINGS + 1], in_sm[MAPPINGS + 1];	/* sessions that it is bound to */
byte in_flight[MAPPINGS + 1];
bool unclean[MAPPINGS + 1];
bool left[MAPPINGS + 1];	/* out of the table, but not yet released */
bool unused[MAPPINGS + 1];	/* its last handle is closed, or has another mapping */
byte table, handle;		/* a mapping; 0: none */
bool try, try_revoked;

/* A failed operation may be in flight: the store has no later session with the mapper. */
#define may_fly(m) (unclean[m] && sm_mapper <= in_sm[m])

#ifdef AT_STORE
#define FENCED(s) (hm_home != s) /* this session carries only messages */
#else
#define FENCED(s) (!qp_home[s])
#endif

active proctype sessions()
{
end:	do
	/* An end eventually notices that the other end is dead... */
	:: atomic { hm_mapper && hm_home != hm_mapper -> hm_mapper = 0 }
	:: atomic { hm_home && hm_home != hm_mapper -> hm_home = 0 }
#ifdef AT_STORE
	:: atomic { sm_mapper && sm_store != sm_mapper -> sm_mapper = 0 }
	:: atomic { sm_store && sm_store != sm_mapper -> sm_store = 0 }
#endif
	/* ... or takes it for dead without reason. */
	:: d_step { troubles && hm_mapper -> hm_mapper = 0; troubles-- }
	:: d_step { troubles && hm_home -> hm_home = 0; troubles-- }
#ifdef AT_STORE
	:: d_step { troubles && sm_mapper -> sm_mapper = 0; troubles-- }
	:: d_step { troubles && sm_store -> sm_store = 0; troubles-- }
#endif
	/* Queue pairs of dead ends are eventually destroyed. */
#ifdef AT_STORE
	:: atomic { qp_store[1] && sm_store != 1 -> qp_store[1] = false }
	:: atomic { qp_store[2] && sm_store != 2 -> qp_store[2] = false }
#else
	:: atomic { qp_home[1] && hm_home != 1 -> qp_home[1] = false }
	:: atomic { qp_home[2] && hm_home != 2 -> qp_home[2] = false }
#endif
	/* Only then does the home drop the mappings of that session. */
	:: d_step { count[1] && FENCED(1) -> count[1] = 0; lost = true }
	:: d_step { count[2] && FENCED(2) -> count[2] = 0; lost = true }
	:: d_step { !hm_home && !hm_mapper && hm_last < SESSIONS ->
		hm_last++;
		hm_home = hm_last;
		hm_mapper = hm_last;
#ifndef AT_STORE
		qp_home[hm_last] = true
#endif
	   }
#ifdef AT_STORE
	:: d_step { !sm_store && !sm_mapper && sm_last < SESSIONS &&
		    (!FENCE_FIRST || !qp_store[sm_last]) ->
		sm_last++;
		sm_store = sm_last;
		sm_mapper = sm_last;
		qp_store[sm_last] = true
	   }
#endif
	od
}

/* Operations arrive and touch memory. */
active proctype network()
{
	byte s;

end:	do
#ifndef AT_STORE
	:: atomic {
		if
		:: packet_home[1] -> s = 1
		:: packet_home[2] -> s = 2
		fi;
		packet_home[s] = false;
		if
		:: qp_home[s] ->
			assert(mem_home);
			done = done || hm_mapper == s
		:: else
		fi;
		s = 0
	   }
#else
	:: atomic {
		if
		:: packet_store[1] -> s = 1
		:: packet_store[2] -> s = 2
		fi;
		packet_store[s] = false;
		if
		:: qp_store[s] ->
			assert(mem_store);
			done = done || sm_mapper == s
		:: else
		fi;
		s = 0
	   }
#endif
	od
}

inline fence_home(s)
{
	d_step {
		if
		:: FENCE ->
			if
			:: hm_home == s -> hm_home = 0
			:: else
			fi;
			qp_home[s] = false
		:: else
		fi;
		count[s] = 0;
		lost = true
	}
}

/* The home frees the LMR, at any time. */
active proctype free()
{
	byte s;

	d_step {
		dying = true;
		s = 1;
		do
		:: s <= SESSIONS ->
			if
			:: count[s] -> msg_revoke[s] = ASKED
			:: else
			fi;
			s++
		:: else -> break
		od;
		s = 1
	}
	do
	:: s <= SESSIONS && msg_revoke[s] == NONE -> s++
	:: s > SESSIONS -> break
	:: atomic { s <= SESSIONS && hm_home == s && msg_revoke[s] == YES ->
		count[s] = 0;
		lost = lost || unclean_at_home[s];
		s++
	   }
	:: atomic { s <= SESSIONS && hm_home == s && msg_revoke[s] == EUCLEAN ->
		count[s] = 0;
		lost = true;
		s++
	   }
	/* The home waits no longer, or the session is over. */
	:: s <= SESSIONS && msg_revoke[s] != NONE ->
		fence_home(s);
		s++
	od;
	mem_home = false;
	/* MEM_FREE. A store that is out of reach is asked later, and fences the same mappers. */
	d_step {
		if
		:: STORE_FENCE && lost ->
			sm_store = 0;
			qp_store[1] = false;
			qp_store[2] = false
		:: else
		fi
	};
	mem_store = false;
	freed = true
}

/* The mapper serves REVOKE, but not in a session that is over at its end. */
active proctype revoker()
{
	byte s, m;
	bool u;

end:	do
	:: atomic { hm_mapper && msg_revoke[hm_mapper] == ASKED ->
		s = hm_mapper;
		msg_revoke[s] = SERVED;
		try_revoked = try_revoked || (try && TRY);
		m = table;
		u = LEFT && ((left[1] && may_fly(1)) || (left[2] && may_fly(2)));
		if
		:: m && state[m] == ACTIVE -> state[m] = REVOKED
		:: else
		fi
	   }
	   !WAIT || !m || !in_flight[m];
	   atomic {
		u = u || (m && may_fly(m));
		if
		:: m && table == m && !in_flight[m] -> table = 0
		:: else
		fi;
		if
		:: hm_mapper == s && UNCLEAN && u -> msg_revoke[s] = EUCLEAN
		:: hm_mapper == s && !(UNCLEAN && u) -> msg_revoke[s] = YES
		:: hm_mapper != s
		fi;
		s = 0;
		m = 0;
		u = false
	   }
	od
}

/* The mapper sends UNMAP; if it cannot, the session must end. */
inline unmap(m)
{
	d_step {
		if
		:: hm_mapper == in_hm[m] && hm_home == hm_mapper &&
		   count[hm_home] ->
			count[hm_home]--;
			unclean_at_home[hm_home] = unclean_at_home[hm_home] ||
						   (UNCLEAN && may_fly(m));
			if
			:: !count[hm_home] && unclean_at_home[hm_home] ->
				lost = true
			:: else
			fi
		:: hm_mapper == in_hm[m] && hm_home != hm_mapper ->
			hm_mapper = 0
		:: else
		fi
	}
}

/* The last handle of a mapping is closed or renewed at some time. */
active proctype release()
{
end:	do
	:: unused[1] ->
		if
		:: state[1] != REVOKED -> unmap(1)
		:: else
		fi;
		d_step { left[1] = false; unused[1] = false }
	:: unused[2] ->
		if
		:: state[2] != REVOKED -> unmap(2)
		:: else
		fi;
		d_step { left[2] = false; unused[2] = false }
	od
}

/* A handle maps the LMR, and maps it anew when its mapping can no longer be used. */
active proctype user()
{
	byte m, s, before;

	do
	:: m < MAPPINGS ->
		if
		:: handle ->
			/* Retire the old mapping, and wait until it has drained. */
end_used:		atomic {
				state[handle] != ACTIVE ||
				hm_mapper != in_hm[handle] ||
				sm_mapper != in_sm[handle];
				if
				:: state[handle] == ACTIVE ->
					state[handle] = RETIRED
				:: else
				fi
			};
			atomic {
				!in_flight[handle];
				left[handle] = true;
				if
				:: table == handle -> table = 0
				:: else
				fi
			};
			if
			:: state[handle] == REVOKED -> break
			:: else
			fi
		:: else
		fi;
		m++;
		before = sm_mapper;
		/* MAP: the home serves it at once, and the reply arrives later. */
end_down:	atomic {
			hm_mapper;
			s = hm_mapper;
			in_hm[m] = s;
			try = true;
			try_revoked = false;
			if
			:: hm_home == s && !dying -> count[s]++; reply = YES
			:: hm_home == s && dying -> reply = NO
			:: hm_home != s -> reply = NONE
			fi
		}
		if
		:: atomic { hm_mapper == s && reply == YES -> reply = NONE }
		:: atomic { hm_mapper == s && reply == NO ->
			reply = NONE;
			try = false
		   }
		   break
		:: atomic { hm_mapper != s -> reply = NONE; try = false }
		   goto again
		fi;
		/* The home has to confirm a session with the store that is newer than the MAP. */
		in_sm[m] = sm_mapper;
		if
		:: CONFIRM && in_sm[m] != before ->
			atomic {
				if
				:: hm_home == s && !dying && count[s] -> reply = YES
				:: hm_home == s && (dying || !count[s]) -> reply = NO
				:: hm_home != s -> reply = NONE
				fi
			}
			if
			:: atomic { hm_mapper == s && reply == YES -> reply = NONE }
			:: atomic { hm_mapper == s && reply == NO ->
				reply = NONE;
				state[m] = RETIRED;
				unused[m] = true;
				try = false
			   }
			   break
			:: atomic { hm_mapper != s -> reply = NONE; try = false }
			   goto again
			fi
		:: else
		fi;
		atomic {
			if
			:: try_revoked ->
				state[m] = RETIRED;
				unused[m] = true
			:: else ->
				state[m] = ACTIVE;
				table = m;
				/* The old mapping may live on, as another handle may have it. */
				if
				:: handle -> unused[handle] = true
				:: else
				fi;
				handle = m
			fi;
			try = false
		}
again:		skip
	:: m == MAPPINGS -> break
	od;
end:	false
}

/* Operations on the handle. */
active proctype operation()
{
	byte n, m, s;

end:	do
	:: n < OPS ->
		n++;
		/* Enter: count the operation before using the mapping. */
end_unmapped:	atomic {
			handle && state[handle] == ACTIVE &&
			(!SESSION || hm_mapper == in_hm[handle]);
			m = handle;
			in_flight[m]++
		}
		/* Post, in that session or not at all. */
		atomic {
			if
#ifndef AT_STORE
			:: hm_mapper &&
			   (!SESSION || hm_mapper == in_hm[m]) ->
				s = hm_mapper;
				packet_home[s] = true
#else
			:: sm_mapper &&
			   (!SESSION || sm_mapper == in_sm[m]) ->
				s = sm_mapper;
				packet_store[s] = true
#endif
			:: else -> s = 0
			fi;
			done = false
		}
		if
		:: s == 0
		:: s != 0 ->
			if
			:: done
			/* The operation timed out, or the session ended. */
			:: d_step { true ->
				unclean[m] = true;
				if
#ifndef AT_STORE
				:: hm_mapper == s -> hm_mapper = 0
#else
				:: sm_mapper == s -> sm_mapper = 0
#endif
				:: else
				fi
			   }
			fi
		fi;
		d_step {
			in_flight[m]--;
			m = 0;
			s = 0;
			done = false
		}
	od
}
