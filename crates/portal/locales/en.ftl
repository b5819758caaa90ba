### Texts of the returns portal. Every message exists in every language with the same values.

## Every page

language-name = English
language-label = Language:
skip-to-content = Skip to content
footer-policy = Return policy
footer-contact = Contact
footer-withdraw = Withdraw from contract here
sign-out = Forget my orders on this device
money = { $currency ->
    [EUR] €{ $number }
    [GBP] £{ $number }
    [JPY] ¥{ $number }
    [USD] ${ $number }
   *[other] { $currency }{ "\u00A0" }{ $number }
}

## Steps

step-number = Step { $number } of { $count }
step-find = Find
step-choose = Items
step-instead = Instead
step-method = Method
step-check = Check

## Errors

error-start = Back to the start
error-not-found-title = This page does not exist
error-not-found-text = Check the address, or use the link that the shop sent you.
error-unavailable-title = Please try again in a moment
error-unavailable-text = This page cannot be shown now. Nothing was changed.
error-too-many-title = Too many tries
error-too-many-text = { $minutes ->
    [one] There were too many tries. Please wait { $minutes } minute and try again.
   *[other] There were too many tries. Please wait { $minutes } minutes and try again.
}
error-proof-title = Please find your order again
error-proof-text = Start with the number of your order.
error-changed-title = Something has changed
error-changed-text = This is not possible any more. Nothing was saved. Go back, reload the page and check your choices.
error-form-title = This page is out of date
error-form-text = Nothing was saved. Go back, reload the page and try again.
error-internal-title = Something went wrong
error-internal-text = Nothing was saved. Please try again later.

## Find

find-title = Return or exchange an order
find-intro = Find your order at { $shop }. You need the order number and one thing that only you know.
find-again = For your safety, please find your order again. Your choices are kept.
find-known-order = You have found order { $order }.
find-continue = Continue with the return
find-returns = My returns
find-order = Order number
find-order-hint = It is in the confirmation e-mail.
find-order-missing = Enter the order number.
find-by = How did you get the order?
find-by-own = I ordered it
find-by-gift = It was a gift
find-key-email = E-mail address of the order
find-key-zip = Postcode of the delivery address
find-key-both = E-mail address of the order, or postcode of the delivery address
find-email-missing = Enter the e-mail address of the order.
find-zip-missing = Enter the postcode of the delivery address.
find-key-missing = Enter the e-mail address of the order or the postcode of the delivery address.
find-gift = Gift code
find-gift-hint = Twelve letters and digits. The giver does not learn of the return.
find-gift-missing = Enter the gift code.
find-submit = Find order
find-wrong = No order was found with these details. Check the order number and the other field.
find-link-over = This link does not work any more. Please find your order here.
