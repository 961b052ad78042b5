/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls through rings: the protocol of Documentation/rpc.rst, for one client node, one server node
 * and one function. Calls take slots and records of a ring, which the client binds, and unbinds
 * when it is idle. Servers take requests and answer them in any order. Calls time out and are
 * cancelled. Sessions break, and the two ends notice at different times.
 *
 * Checked, whatever the order of events:
 *
 *   - devices write and send only memory that was not freed and belongs to the call: no late reply
 *     in another call's record, and no request over one that no server has read yet
 *   - no request is served twice, and a caller gets only its own reply
 *   - no caller waits for ever: only TIMEOUTS calls time out, a lost call is an invalid end state
 *   - in the end all slots, records, rings and mirrors are free
 *
 * Not modelled: lengths; the window of calls between two nodes; one-way messages (their reply is
 * empty); functions that are registered anew; memory by reference of long calls (lite_slot_free()
 * keeps it until the mirror is fenced).
 *
 * CALLS, SERVERS, BINDS, TIMEOUTS, IDLES and BREAKS say how much happens. Each of the macros below
 * leaves out one step that the argument rests on, and the model must then fail.
 */
#ifdef NO_CANCEL	/* a call that times out frees slot and record at once */
#define CANCEL_FIRST false
#else
#define CANCEL_FIRST true
#endif
#ifdef NO_ANSWER	/* ... frees them as soon as CANCEL has been sent */
#define AWAIT_ANSWER false
#else
#define AWAIT_ANSWER true
#endif
#ifdef NO_SEQ		/* CANCEL names the slot, but not the call */
#define SEQ false
#else
#define SEQ true
#endif
#ifdef NO_BUSY		/* a request that is being answered can be cancelled */
#define BUSY_STAYS false
#else
#define BUSY_STAYS true
#endif
#ifdef NO_ORDER		/* CANCEL may overtake the request */
#define ORDER false
#else
#define ORDER true
#endif
#ifdef NO_COPY		/* servers read requests in the ring, even cancelled ones */
#define COPY false
#else
#define COPY true
#endif
#ifdef NO_FREE_FIRST	/* the server frees its slot only after it has sent the reply */
#define FREE_FIRST false
#else
#define FREE_FIRST true
#endif
#ifdef NO_SETTLE	/* UNBIND does not wait until all replies are confirmed */
#define SETTLE false
#else
#define SETTLE true
#endif
#ifdef NO_EMPTY		/* a ring is unbound while calls are under way */
#define EMPTY false
#else
#define EMPTY true
#endif
#ifdef NO_BEAR		/* CANCEL for a ring that is gone ends the session */
#define GONE_IS_FINE false
#else
#define GONE_IS_FINE true
#endif
#ifdef NO_ERASE		/* the client forgets the number of a ring only after UNBIND */
#define ERASE_FIRST false
#else
#define ERASE_FIRST true
#endif
#ifdef NO_FENCE		/* mirrors are freed when a session ends, before the fence */
#define FENCE false
#else
#define FENCE true
#endif
#ifdef NO_SERVER_FENCE	/* so are rings */
#define SERVER_FENCE false
#else
#define SERVER_FENCE true
#endif

#ifndef CALLS
#define CALLS 3
#endif
#ifndef SERVERS
#define SERVERS 1
#endif
#ifndef BINDS
#define BINDS 1
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 1
#endif
#ifndef IDLES
#define IDLES 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define SESSIONS (BREAKS + 1)

mtype = { REQUEST, REPLY, CANCEL, CANCELLED, BIND, BOUND, UNBIND, UNBOUND };

/*
 * Messages of each session, in order: kind, number of the ring, slot, call; then the record's
 * address: which ring or mirror, and the unit in it. In CANCELLED, call is 0 if a reply will come
 * or has come.
 */
chan to_server[SESSIONS] = [4] of { mtype, byte, byte, byte, byte, byte };
chan to_client[SESSIONS] = [4] of { mtype, byte, byte, byte, byte, byte };
/* Calls between kernels, which server_works() serves. */
chan work = [3] of { byte, mtype, byte, byte, byte, byte };

/*
 * An end of a session is up until its node knows that the session is over. The queue pair accepts
 * packets until the fence destroys it.
 */
byte session;		/* the latest */
bool up_client[SESSIONS], up_server[SESSIONS];
bool qp_client[SESSIONS], qp_server[SESSIONS];
byte breaks = BREAKS;

/* At the client. */
mtype = { NONE, NEW, LIVE, CLOSING, GONE };
mtype = { FREE, WAITING, ENDED, FAILED, ABANDONED, CANCELLING };

/* bind[b] is the client's end of ring[b]: the model tells memory apart by these numbers. */
typedef bind_t {
	mtype state = NONE;
	byte in;		/* session */
	byte index;		/* the ring's number on the wire + 1; 0: not known yet */
	bool mirror;		/* the mirror is allocated */
	byte callers;		/* callers that have a reference */
	mtype slot[SLOTS] = FREE;
	byte call[SLOTS];
	byte unit[SLOTS];
	byte owner[SLOTS];	/* the call that a record belongs to */
	byte content[SLOTS];	/* the call that the bytes in a record are of */
};
bind_t bind[BINDS];
byte binds;		/* made so far */
byte timeouts = TIMEOUTS;
byte idles = IDLES;
byte in_line;		/* calls that have got room so far */
byte finished;		/* calls that have ended */

typedef table_t { byte at[2] };
table_t by_index[SESSIONS];	/* number in bind[] + 1 */

byte cancelled;		/* answer to CANCEL: 0: none yet; 1: no reply comes; 2: one does */
bool unbound[BINDS];

/* At the server. */
mtype = { QUEUED, BUSY, TAKEN };

typedef ring_t {
	bool memory;		/* the memory is allocated */
	bool table;		/* the ring is in the table */
	bool over;		/* the ring is unbound, or its session is over */
	byte users;		/* threads that have a reference */
	byte sent;		/* replies in flight */
	bool unconfirmed;	/* the device may have to send replies again */
	byte in;
	byte index;
	mtype req[SLOTS] = FREE;
	byte call[SLOTS];
	byte unit[SLOTS];
	bool cancelled[SLOTS];
	byte reader[SLOTS];	/* the call for which a server reads, or will read, a record */
	byte content[SLOTS];
};
ring_t ring[BINDS];
table_t ring_at[SESSIONS];
bool served[CALLS + 1];

#define sends_client(s) (up_client[s])
#define sends_server(s) (up_server[s])

/* The last reference frees ring or mirror; the table has one. */
inline ring_put(b)
{
	if
	:: ring[b].memory && !ring[b].table && !ring[b].users ->
		/* When the device sends a reply again, it reads the memory. */
		assert(!ring[b].unconfirmed || !qp_server[ring[b].in]);
		ring[b].memory = false
	:: else
	fi
}

inline mirror_put(b)
{
	if
	:: bind[b].mirror && bind[b].state == GONE && !bind[b].callers ->
		bind[b].mirror = false
	:: else
	fi
}

inline slot_free(b, s)
{
	bind[b].owner[bind[b].unit[s]] = 0;
	bind[b].slot[s] = FREE;
	bind[b].call[s] = 0;
	bind[b].unit[s] = 0
}

/* The server's device writes requests into the ring; the receive handler looks at them. */
active proctype server_receives()
{
	byte e, index, s, c, b, u, r;
	mtype kind;

end:	do
	:: atomic {
		if
		:: qp_server[0] && len(to_server[0]) -> e = 0
#if BREAKS
		:: qp_server[1] && len(to_server[1]) -> e = 1
#endif
		fi;
#ifdef NO_ORDER
		if
		:: to_server[e] ?? CANCEL, index, s, c, b, u -> kind = CANCEL
		:: to_server[e] ? kind, index, s, c, b, u
		fi;
#else
		to_server[e] ? kind, index, s, c, b, u;
#endif
		if
		:: kind == REQUEST ->
			assert(ring[b].memory);
			assert(!ring[b].reader[u]);
			ring[b].content[u] = c;
			r = ring_at[e].at[index];
			if
			:: up_server[e] && r && !ring[r - 1].over ->
				r--;
				assert(r == b);
				/* Else the server would end the session. */
				assert(ring[r].req[s] == FREE);
				ring[r].req[s] = QUEUED;
				ring[r].call[s] = c;
				ring[r].unit[s] = u;
				ring[r].cancelled[s] = false;
				ring[r].reader[u] = c
			:: else -> assert(!up_server[e])
			fi
		:: kind != REQUEST && up_server[e] ->
			work ! e, kind, index, s, c, b
		:: kind != REQUEST && !up_server[e]
		fi;
		e = 0; index = 0; s = 0; c = 0; b = 0; u = 0; r = 0; kind = 0
	   }
	od
}

inline post_server(e, kind, index, s, c, b, u)
{
	if
	:: sends_server(e) -> to_client[e] ! kind, index, s, c, b, u
	:: else
	fi
}

/* The server serves CANCEL, BIND and UNBIND. */
active proctype server_works()
{
	byte e, index, s, c, b, r;
	mtype kind;

end:	do
	:: work ? e, kind, index, s, c, b ->
		if
		:: kind == CANCEL ->
			atomic {
				r = ring_at[e].at[index];
				if
				/* The ring is unbound, so there was a reply. */
				:: up_server[e] && !r && GONE_IS_FINE -> c = 0
				:: up_server[e] && (r || !GONE_IS_FINE) ->
					assert(r && !ring[r - 1].over);
					r--;
					if
					:: SEQ && ring[r].call[s] != c -> c = 0
					:: else ->
						if
						:: ring[r].req[s] == QUEUED ||
						   ring[r].req[s] == TAKEN ||
						   (ring[r].req[s] == BUSY && !BUSY_STAYS) ->
							if
							:: COPY || ring[r].req[s] == QUEUED ->
								ring[r].reader[ring[r].unit[s]] = 0
							:: else
							fi;
							ring[r].req[s] = FREE
						:: ring[r].req[s] == BUSY && BUSY_STAYS ->
							ring[r].cancelled[s] = true;
							c = 0
						:: ring[r].req[s] == FREE && ORDER -> c = 0
						:: ring[r].req[s] == FREE && !ORDER
						fi
					fi
				:: else
				fi
			}
			atomic { post_server(e, CANCELLED, 0, 0, c, 0, 0) }
		:: kind == BIND ->
			atomic {
				if
				:: up_server[e] ->
					index = (ring_at[e].at[0] -> 1 : 0);
					assert(!ring_at[e].at[index]);
					ring_at[e].at[index] = b + 1;
					ring[b].memory = true;
					ring[b].table = true;
					ring[b].in = e;
					ring[b].index = index
				:: else
				fi
			}
			atomic { post_server(e, BOUND, index, 0, 0, b, 0) }
		:: kind == UNBIND ->
			/* Wait until the device need not send replies again. */
			!SETTLE || !ring[b].unconfirmed || !up_server[e];
			atomic {
				r = ring_at[e].at[index];
				if
				:: up_server[e] ->
					assert(r && !ring[r - 1].over);
					r--;
					/* Else the server would end the session. */
					assert(ring[r].req[0] == FREE);
#if SLOTS > 1
					assert(ring[r].req[1] == FREE);
#endif
					ring_at[e].at[index] = 0;
					ring[r].over = true;
					ring[r].table = false;
					ring_put(r)
				:: else
				fi
			}
			atomic { post_server(e, UNBOUND, 0, 0, 0, b, 0) }
		fi;
		d_step { e = 0; index = 0; s = 0; c = 0; b = 0; r = 0; kind = 0 }
	od
}

inline find_queued(b, s)
{
	if
	:: ring[0].req[0] == QUEUED -> b = 0; s = 0
#if SLOTS > 1
	:: ring[0].req[1] == QUEUED -> b = 0; s = 1
#endif
#if BINDS > 1
	:: ring[1].req[0] == QUEUED -> b = 1; s = 0
#if SLOTS > 1
	:: ring[1].req[1] == QUEUED -> b = 1; s = 1
#endif
#endif
	fi
}

/* A server takes requests and answers them. */
active [SERVERS] proctype server()
{
	byte b, s, c, u;
	bool answer;

end:	do
	:: atomic {
		find_queued(b, s);
		ring[b].req[s] = BUSY;
		ring[b].users++;
		c = ring[b].call[s];
		u = ring[b].unit[s]
	   }
	   atomic {
		/* RECV copies the request. */
		assert(ring[b].memory);
		assert(ring[b].content[u] == c);
		assert(!served[c]);
		served[c] = true;
		if
		:: ring[b].req[s] == BUSY && ring[b].over ->
			ring[b].req[s] = FREE
		:: ring[b].req[s] == BUSY && !ring[b].over &&
		   !ring[b].cancelled[s] ->
			ring[b].req[s] = TAKEN
		/* CANCEL was told that a reply comes. */
		:: ring[b].req[s] == BUSY && !ring[b].over &&
		   ring[b].cancelled[s]
		:: else
		fi;
		if
		:: COPY -> ring[b].reader[u] = 0
		:: else
		fi
	   }
	   /* REPLY. By now the request may be cancelled, or its ring over. */
	   atomic {
		if
		:: !COPY && ring[b].memory -> assert(ring[b].content[u] == c)
		:: else
		fi;
		answer = ring[b].call[s] == c &&
			 (ring[b].req[s] == TAKEN ||
			  (ring[b].req[s] == BUSY && ring[b].cancelled[s]));
		if
		:: answer ->
			ring[b].req[s] = BUSY;
			ring[b].reader[u] = c
		:: else ->
			if
			:: !COPY && ring[b].reader[u] == c -> ring[b].reader[u] = 0
			:: else
			fi
		fi
	   }
	   if
	   :: answer ->
		/* The reply overwrites the request. */
		atomic {
			assert(ring[b].memory);
			assert(ring[b].content[u] == c);
			ring[b].reader[u] = 0;
			answer = !ring[b].over;
			if
			:: FREE_FIRST || !answer -> ring[b].req[s] = FREE
			:: else
			fi
		}
		if
		:: answer ->
			atomic {
				if
				:: sends_server(ring[b].in) ->
					assert(ring[b].memory);
					to_client[ring[b].in] ! REPLY, ring[b].index, s, c, b, u;
					ring[b].sent++;
					ring[b].unconfirmed = true
				:: else
				fi
			}
			if
			:: !FREE_FIRST -> ring[b].req[s] = FREE
			:: else
			fi
		:: else
		fi
	   :: else
	   fi;
	   atomic {
		ring[b].users--;
		ring_put(b);
		b = 0; s = 0; c = 0; u = 0; answer = false
	   }
	od
}

active proctype client_receives()
{
	byte e, index, s, c, b, u, m;
	mtype kind;

end:	do
	/* The transport confirms replies. */
	:: d_step { ring[0].unconfirmed && !ring[0].sent -> ring[0].unconfirmed = false }
#if BINDS > 1
	:: d_step { ring[1].unconfirmed && !ring[1].sent -> ring[1].unconfirmed = false }
#endif
	:: atomic {
		if
		:: qp_client[0] && len(to_client[0]) -> e = 0
#if BREAKS
		:: qp_client[1] && len(to_client[1]) -> e = 1
#endif
		fi;
		to_client[e] ? kind, index, s, c, b, u;
		if
		:: kind == REPLY ->
			assert(bind[b].mirror);
			/* After its session is over, a record goes to no new call. */
			assert(bind[b].owner[u] == c || !up_client[e]);
			bind[b].content[u] = c;
			ring[b].sent--;
			if
			:: up_client[e] ->
				m = by_index[e].at[index];
				assert(m == b + 1 && bind[b].call[s] == c);
				if
				:: bind[b].slot[s] == WAITING ->
					bind[b].slot[s] = ENDED
				:: bind[b].slot[s] == ABANDONED ||
				   bind[b].slot[s] == CANCELLING ->
					slot_free(b, s)
				fi
			:: else
			fi
		:: kind == CANCELLED && up_client[e] ->
			cancelled = (c -> 1 : 2)
		:: kind == BOUND && up_client[e] -> bind[b].index = index + 1
		:: kind == UNBOUND && up_client[e] -> unbound[b] = true
		:: kind != REPLY && !up_client[e]
		fi;
		e = 0; index = 0; s = 0; c = 0; b = 0; u = 0; m = 0; kind = 0
	   }
	od
}

inline take(b, s, u)
{
	if
	:: bind[b].slot[0] == FREE -> s = 0
#if SLOTS > 1
	:: bind[b].slot[0] != FREE && bind[b].slot[1] == FREE -> s = 1
#endif
	fi;
	/* Any record that is free (the implementation is next-fit). */
	if
	:: !bind[b].owner[0] -> u = 0
#if SLOTS > 1
	:: !bind[b].owner[1] -> u = 1
#endif
	fi
}

#if SLOTS > 1
#define room(b) (bind[b].slot[0] == FREE || bind[b].slot[1] == FREE)
#else
#define room(b) (bind[b].slot[0] == FREE)
#endif

#define usable(b) (bind[b].state == LIVE || bind[b].state == NEW)
#if BINDS > 1
#define none_usable (!usable(0) && !usable(1))
#define none_live (bind[0].state != LIVE && bind[1].state != LIVE)
/* Another ring of the session has become LIVE meanwhile. */
#define is_late(b) (bind[1 - b].state == LIVE && bind[1 - b].in == bind[b].in)
#else
#define none_usable (!usable(0))
#define none_live none_usable
#define is_late(b) false
#endif

/* Calls are alike, so they can take room in the order of their numbers. */
proctype caller(byte c)
{
	byte b, s, u;

again:	atomic {
		if
		:: usable(0) -> b = 0
#if BINDS > 1
		:: usable(1) -> b = 1
#endif
		/* In a session it may bind, even if another user is making a ring. */
		:: none_live && up_client[session] && binds < BINDS ->
			b = binds;
			binds++;
			bind[b].state = NEW;
			bind[b].in = session;
			to_server[session] ! BIND, 0, 0, 0, b, 0;
			goto made
		:: none_usable && binds == BINDS -> goto done
		fi;
		bind[b].callers++
	}
	bind[b].state != NEW;
	goto bound;
made:	bind[b].callers++;
	bind[b].index || !up_client[bind[b].in];
	atomic {
		if
		:: bind[b].state == NEW && up_client[bind[b].in] && is_late(b) ->
			bind[b].state = CLOSING;
			to_server[bind[b].in] ! UNBIND, bind[b].index - 1, 0, 0, b, 0;
			goto late
		:: bind[b].state == NEW && up_client[bind[b].in] && !is_late(b) ->
			by_index[bind[b].in].at[bind[b].index - 1] = b + 1;
			bind[b].mirror = true;
			bind[b].state = LIVE
		:: else -> bind[b].state = GONE
		fi
	}
	goto bound;
late:	/* This ring was not used: give it back. */
	atomic {
		unbound[b] || !qp_client[bind[b].in];
		bind[b].state = GONE;
		bind[b].callers--;
		b = 0;
		goto again
	}
bound:	/* Wait in line for room. */
	atomic {
		(room(b) && in_line == c - 1) || bind[b].state != LIVE;
		if
		:: bind[b].state != LIVE || !up_client[bind[b].in] ->
			bind[b].callers--;
			mirror_put(b);
			b = 0;
			goto again
		:: else
		fi;
		in_line++;
		take(b, s, u);
		bind[b].slot[s] = WAITING;
		bind[b].call[s] = c;
		bind[b].unit[s] = u;
		bind[b].owner[u] = c;
		bind[b].content[u] = 0
	}
	atomic {
		if
		:: sends_client(bind[b].in) ->
			to_server[bind[b].in] ! REQUEST, bind[b].index - 1, s, c, b, u
		:: else
		fi
	}
	if
	:: atomic { bind[b].slot[s] == ENDED ->
		assert(bind[b].call[s] == c);
		assert(bind[b].content[u] == c && served[c]);
		slot_free(b, s)
	   }
	:: atomic { bind[b].slot[s] == FAILED ->
		assert(bind[b].call[s] == c);
		slot_free(b, s)
	   }
	:: atomic { bind[b].slot[s] == WAITING && timeouts ->
		timeouts--;
		if
		:: CANCEL_FIRST -> bind[b].slot[s] = ABANDONED
		:: else -> slot_free(b, s)
		fi
	   }
	fi;
	atomic { bind[b].callers--; mirror_put(b) }
done:	atomic { finished++; b = 0; s = 0; u = 0 }
}

inline find_abandoned(b, s)
{
	if
	:: bind[0].slot[0] == ABANDONED -> b = 0; s = 0
#if SLOTS > 1
	:: bind[0].slot[1] == ABANDONED -> b = 0; s = 1
#endif
#if BINDS > 1
	:: bind[1].slot[0] == ABANDONED -> b = 1; s = 0
#if SLOTS > 1
	:: bind[1].slot[1] == ABANDONED -> b = 1; s = 1
#endif
#endif
	fi
}

active proctype canceller()
{
	byte b, s, c, e;

end:	do
	:: atomic {
		find_abandoned(b, s);
		c = bind[b].call[s];
		e = bind[b].in;
		bind[b].slot[s] = CANCELLING;
		cancelled = 0
	   }
	   atomic {
		if
		:: sends_client(e) ->
			to_server[e] ! CANCEL, bind[b].index - 1, s, c, b, 0
		:: else
		fi;
		if
		:: !AWAIT_ANSWER && bind[b].slot[s] == CANCELLING &&
		   bind[b].call[s] == c -> slot_free(b, s)
		:: else
		fi
	   }
	   cancelled || !up_client[e];
	   atomic {
		if
		:: up_client[e] && cancelled == 1 && AWAIT_ANSWER &&
		   (bind[b].call[s] == c || !SEQ) && bind[b].slot[s] == CANCELLING ->
			slot_free(b, s)
		:: else
		fi;
		cancelled = 0;
		b = 0; s = 0; c = 0; e = 0
	   }
	od
}

#if SLOTS > 1
#define unused(b) (bind[b].slot[0] == FREE && bind[b].slot[1] == FREE)
#else
#define unused(b) (bind[b].slot[0] == FREE)
#endif

/* The client closes idle rings, and in the end all, and then unbinds them. */
proctype idle(byte b)
{
	byte e;

	atomic {
		bind[b].state == GONE || finished == CALLS ||
		(bind[b].state == LIVE && idles && unused(b));
		if
		:: bind[b].state == GONE || bind[b].state == NONE -> goto end
		:: else
		fi;
		if
		:: finished < CALLS -> idles--
		:: else
		fi;
		e = bind[b].in;
		bind[b].state = CLOSING
	}
	/* The last call has ended, but its CANCEL may still be in flight. */
	atomic {
		unused(b) || !EMPTY || bind[b].state == GONE;
		if
		:: bind[b].state == CLOSING ->
			if
			:: ERASE_FIRST -> by_index[e].at[bind[b].index - 1] = 0
			:: else
			fi;
			if
			:: up_client[e] ->
				to_server[e] ! UNBIND, bind[b].index - 1, 0, 0, b, 0
			:: else
			fi
		:: else
		fi
	}
	atomic {
		unbound[b] || !qp_client[e];
		if
		:: bind[b].state == CLOSING ->
			if
			:: !ERASE_FIRST -> by_index[e].at[bind[b].index - 1] = 0
			:: else
			fi;
			bind[b].state = GONE;
			mirror_put(b)
		:: else
		fi
	}
end:	skip
}

#if BREAKS
inline fail_slot(b, s)
{
	if
	:: bind[b].slot[s] == WAITING -> bind[b].slot[s] = FAILED
	:: bind[b].slot[s] == ABANDONED || bind[b].slot[s] == CANCELLING ->
		slot_free(b, s)
	:: else
	fi
}

/* The client notices that the session is over: it ends all calls, fences, and frees mirrors. */
proctype client_end()
{
	byte b;

	d_step { breaks || !up_server[0]; breaks = 0; up_client[0] = false }
	d_step {
		b = 0;
		do
		:: b < BINDS ->
			if
			:: bind[b].state != NONE && bind[b].in == 0 ->
				fail_slot(b, 0);
#if SLOTS > 1
				fail_slot(b, 1)
#endif
			:: else
			fi;
			b++
		:: else -> break
		od;
		b = 0
	}
	if
	:: FENCE -> qp_client[0] = false
	:: else
	fi;
	d_step {
		do
		:: b < BINDS ->
			if
			:: bind[b].state != NONE && bind[b].in == 0 &&
			   bind[b].state != NEW ->
				if
				:: bind[b].state != GONE ->
					by_index[0].at[bind[b].index - 1] = 0
				:: else
				fi;
				bind[b].state = GONE;
				mirror_put(b)
			:: else
			fi;
			b++
		:: else -> break
		od;
		b = 0
	}
	qp_client[0] = false
}

inline forget(b, s)
{
	if
	:: ring[b].req[s] == QUEUED || ring[b].req[s] == TAKEN ->
		ring[b].reader[ring[b].unit[s]] = 0;
		ring[b].req[s] = FREE
	:: else
	fi
}

/* The server notices: it drops all requests, fences, and frees rings. */
proctype server_end()
{
	byte b;

	d_step {
		breaks || !up_client[0];
		breaks = 0;
		up_server[0] = false;
		b = 0;
		do
		:: b < BINDS ->
			if
			:: ring[b].table && ring[b].in == 0 ->
				ring[b].over = true;
				forget(b, 0);
#if SLOTS > 1
				forget(b, 1)
#endif
			:: else
			fi;
			b++
		:: else -> break
		od;
		b = 0
	}
	if
	:: SERVER_FENCE -> qp_server[0] = false
	:: else
	fi;
	d_step {
		do
		:: b < BINDS ->
			if
			:: ring[b].table && ring[b].in == 0 ->
				ring_at[0].at[ring[b].index] = 0;
				ring[b].table = false;
				ring_put(b)
			:: else
			fi;
			b++
		:: else -> break
		od;
		b = 0
	}
	qp_server[0] = false
}

/* When both ends know it, a new session begins, whether the old one is fenced or not. */
proctype reconnect()
{
	d_step {
		!up_client[0] && !up_server[0];
		up_client[1] = true;
		up_server[1] = true;
		qp_client[1] = true;
		qp_server[1] = true;
		session = 1
	}
}
#endif

init {
	byte b, s;

	atomic {
		up_client[0] = true;
		up_server[0] = true;
		qp_client[0] = true;
		qp_server[0] = true;
		b = 1;
		do
		:: b <= CALLS -> run caller(b); b++
		:: else -> break
		od;
		b = 0;
		do
		:: b < BINDS -> run idle(b); b++
		:: else -> break
		od;
		b = 0;
#if BREAKS
		run client_end();
		run server_end();
		run reconnect()
#endif
	}
	finished == CALLS;
	do
	:: b < binds ->
		bind[b].state == GONE && !bind[b].mirror && !ring[b].memory;
		s = 0;
		do
		:: s < SLOTS ->
			assert(bind[b].slot[s] == FREE && !bind[b].owner[s]);
			assert(ring[b].req[s] == FREE);
			s++
		:: else -> break
		od;
		b++
	:: else -> break
	od
}
