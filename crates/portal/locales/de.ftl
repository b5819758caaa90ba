### Texte des Retourenportals. Jede Nachricht gibt es in jeder Sprache mit denselben Werten.

## Every page

language-name = Deutsch
language-label = Sprache:
skip-to-content = Zum Inhalt springen
footer-policy = Rückgabebedingungen
footer-contact = Kontakt
footer-withdraw = Vertrag hier widerrufen
sign-out = Meine Bestellungen auf diesem Gerät vergessen
money = { $currency ->
    [EUR] { $number }{ "\u00A0" }€
    [GBP] { $number }{ "\u00A0" }£
    [JPY] { $number }{ "\u00A0" }¥
    [USD] { $number }{ "\u00A0" }$
   *[other] { $number }{ "\u00A0" }{ $currency }
}

## Steps

step-number = Schritt { $number } von { $count }
step-find = Suchen
step-choose = Artikel
step-instead = Ersatz
step-method = Rückgabe
step-check = Prüfen

## Errors

error-start = Zurück zum Anfang
error-not-found-title = Diese Seite gibt es nicht
error-not-found-text = Prüfen Sie die Adresse oder nutzen Sie den Link, den Sie vom Shop bekommen haben.
error-unavailable-title = Bitte versuchen Sie es gleich noch einmal
error-unavailable-text = Diese Seite kann gerade nicht angezeigt werden. Es wurde nichts geändert.
error-too-many-title = Zu viele Versuche
error-too-many-text = { $minutes ->
    [one] Es gab zu viele Versuche. Bitte warten Sie { $minutes } Minute und versuchen Sie es noch einmal.
   *[other] Es gab zu viele Versuche. Bitte warten Sie { $minutes } Minuten und versuchen Sie es noch einmal.
}
error-proof-title = Bitte suchen Sie Ihre Bestellung noch einmal
error-proof-text = Beginnen Sie mit der Nummer Ihrer Bestellung.
error-changed-title = Etwas hat sich geändert
error-changed-text = Das ist nicht mehr möglich. Es wurde nichts gespeichert. Gehen Sie zurück, laden Sie die Seite neu und prüfen Sie Ihre Auswahl.
error-form-title = Diese Seite ist veraltet
error-form-text = Es wurde nichts gespeichert. Gehen Sie zurück, laden Sie die Seite neu und versuchen Sie es noch einmal.
error-internal-title = Etwas ist schiefgegangen
error-internal-text = Es wurde nichts gespeichert. Bitte versuchen Sie es später noch einmal.

## Find

find-title = Bestellung zurückgeben oder umtauschen
find-intro = Suchen Sie Ihre Bestellung bei { $shop }. Sie brauchen die Bestellnummer und eine Angabe, die nur Sie kennen.
find-again = Bitte suchen Sie Ihre Bestellung zu Ihrer Sicherheit noch einmal. Ihre Auswahl bleibt erhalten.
find-known-order = Sie haben die Bestellung { $order } gefunden.
find-continue = Weiter zur Rückgabe
find-returns = Meine Rückgaben
find-order = Bestellnummer
find-order-hint = Sie steht in der Bestätigungs-E-Mail.
find-order-missing = Geben Sie die Bestellnummer ein.
find-by = Wie haben Sie die Bestellung bekommen?
find-by-own = Ich habe sie bestellt
find-by-gift = Sie war ein Geschenk
find-key-email = E-Mail-Adresse der Bestellung
find-key-zip = Postleitzahl der Lieferadresse
find-key-both = E-Mail-Adresse der Bestellung oder Postleitzahl der Lieferadresse
find-email-missing = Geben Sie die E-Mail-Adresse der Bestellung ein.
find-zip-missing = Geben Sie die Postleitzahl der Lieferadresse ein.
find-key-missing = Geben Sie die E-Mail-Adresse der Bestellung oder die Postleitzahl der Lieferadresse ein.
find-gift = Geschenkcode
find-gift-hint = Zwölf Buchstaben und Ziffern. Wer es geschenkt hat, erfährt nichts von der Rückgabe.
find-gift-missing = Geben Sie den Geschenkcode ein.
find-submit = Bestellung suchen
find-wrong = Mit diesen Angaben wurde keine Bestellung gefunden. Prüfen Sie die Bestellnummer und das andere Feld.
find-link-over = Dieser Link funktioniert nicht mehr. Bitte suchen Sie Ihre Bestellung hier.
