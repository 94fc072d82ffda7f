// The page of a password reset link. `page.js` is loaded before it.
'use strict';

// Behind the `#`, where no browser sends it to anybody.
const token = location.hash.slice(1);
at('language').hash = location.hash;

on('set-password', 'submit', async () => {
  const password = at('new-password');
  if (password.value !== at('again').value) {
    at('again').focus();
    throw new Error(spoken.unequal);
  }
  const { username } = await ask('POST', '/api/auth/password/reset', { token, new_password: password.value });
  // Worth nothing any more, neither to who looks over a shoulder nor to who looks through the history.
  history.replaceState(null, '', location.pathname + location.search);
  at('language').hash = '';
  at('set-password').reset();
  at('set-password').hidden = true;
  at('whose').textContent = username;
  at('done').hidden = false;
  say('passwordSet');
  at('to-sign-in').focus();
});

if (token) {
  at('set-password').hidden = false;
  at('new-password').focus();
} else {
  complain(spoken.noToken);
}
